package gate

import "github.com/slipway-platform/slipway/internal/health"

// A check whose subject depends on something that failed is blocked, so that the report names the cause once. The functions here find
// such causes.

// withCilium skips a check where no CNI is expected.
func withCilium(judge func(*Spec, *Cluster) []health.Result) func(*Spec, *Cluster) []health.Result {
	return func(spec *Spec, seen *Cluster) []health.Result {
		if spec.Cilium == nil {
			return []health.Result{health.Skip("", "no CNI is expected yet")}
		}
		return judge(spec, seen)
	}
}

// withNetwork skips a check where no ranges are declared.
func withNetwork(judge func(*Spec, *Cluster) []health.Result) func(*Spec, *Cluster) []health.Result {
	return func(spec *Spec, seen *Cluster) []health.Result {
		if spec.Network == nil {
			return []health.Result{health.Skip("", "no ranges are declared to compare with")}
		}
		return judge(spec, seen)
	}
}

// eachTalos judges nodes by what their Talos APIs say. A node whose API does not answer is blocked.
func eachTalos(nodes []Machine, seen *Cluster, judge func(Machine, TalosNode) health.Result) []health.Result {
	var results []health.Result
	for _, node := range nodes {
		talos := seen.Talos[node.Name]
		if talos.Err != nil {
			results = append(results, health.Block(node.Name, "its Talos API does not answer"))
			continue
		}
		results = append(results, judge(node, talos))
	}
	return results
}

// unread returns the result of a check whose objects cannot be read from Kubernetes; nil if they can.
func unread[T any](seen *Cluster, subject, what string, objects health.Seen[T]) []health.Result {
	switch {
	case seen.API.Asked && !seen.API.Ready:
		return []health.Result{health.Block(subject, "the API server is not ready")}
	case objects.Err != nil && objects.Err.Gone:
		return []health.Result{health.Block(subject, "the API server does not answer")}
	}
	if result, missing := objects.Unread(subject, what); missing {
		return []health.Result{result}
	}
	return nil
}

// eachRegistered judges the declared nodes that are registered. The others are blocked.
func eachRegistered(spec *Spec, seen *Cluster, judge func(Machine, Node) health.Result) []health.Result {
	if results := unread(seen, "", "nodes", seen.Nodes); results != nil {
		return results
	}
	var results []health.Result
	for _, want := range spec.Nodes {
		if node, registered := seen.node(want.Name); registered {
			results = append(results, judge(want, node))
		} else {
			results = append(results, health.Block(want.Name, want.Name+" is not registered"))
		}
	}
	return results
}

// agentsNotReady is the result of a check that asks the Cilium agents, until all are Ready: their answers would only show that some are
// missing. Then it is nil.
func agentsNotReady(spec *Spec, seen *Cluster) []health.Result {
	if results := unread(seen, "", "agent pods", seen.Agents); results != nil {
		return results
	}
	for _, want := range spec.Nodes {
		if cause := seen.nodeDown(want); cause != "" {
			return []health.Result{health.Block("", cause)}
		}
		if pod, scheduled := seen.agentOn(want.Name); !scheduled || !pod.Ready || pod.Deleting {
			return []health.Result{health.Block("", "the agents are not all Ready, "+want.Name+"'s is not")}
		}
	}
	return nil
}

// nodeDown returns why nothing can run on a node; "" if it can.
func (seen *Cluster) nodeDown(want Machine) string {
	if down := seen.kubeletDown(want); down != "" {
		return down
	}
	if other := seen.misnamed(want); other != "" {
		return want.Name + " is registered as " + other
	}
	switch node, registered := seen.node(want.Name); {
	case seen.Nodes.Synced && !registered:
		return want.Name + " is not registered"
	case node.silent():
		return want.Name + " has stopped reporting"
	}
	return ""
}

// kubeletDown returns that Talos reports the node's kubelet as not running; "" if it runs, or if Talos does not say.
func (seen *Cluster) kubeletDown(want Machine) string {
	talos := seen.Talos[want.Name]
	if talos.Asked && talos.Err == nil && !talos.Services["kubelet"].Well() {
		return "the kubelet of " + want.Name + " does not run"
	}
	return ""
}
