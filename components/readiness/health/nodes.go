package health

import (
	"fmt"
	"strings"
)

func nodesReady(spec *GateSpec) Check[*Cluster] {
	name, cniExpected := "every declared node is registered and Ready", spec.Cilium != nil
	if !cniExpected {
		name = "every declared node is registered"
	}
	return Check[*Cluster]{Name: name, Evaluate: func(seen *Cluster) []Result {
		byName := map[string]KubeNode{}
		for _, node := range seen.Nodes.Items {
			byName[node.Name] = node
		}
		var results []Result
		for _, want := range spec.Nodes {
			node, registered := byName[want.Name]
			result := passed(want.Name)
			switch {
			case seen.Nodes.Err != nil:
				result = unreadable(want.Name, "nodes", seen.Nodes.Err)
			case !seen.Nodes.Synced:
				result = unseen(want.Name, "node")
			case !registered:
				result = failed(want.Name, fmt.Sprintf("not registered; its kubelet at %s has not joined", want.Address))
				result.Command = fmt.Sprintf("talosctl -n %s logs kubelet", want.Address)
			case cniExpected && node.Ready != "True":
				result = failed(want.Name, notReady(node))
				if len(node.Taints) > 0 {
					result.Evidence = []string{"taints: " + strings.Join(node.Taints, ", ")}
				}
				result.Command = "kubectl describe node " + want.Name
			}
			results = append(results, result)
		}
		return results
	}}
}

func notReady(node KubeNode) string {
	if node.Ready == "" {
		return "has no Ready condition yet"
	}
	reason := "Ready is " + node.Ready
	for _, part := range []string{node.Reason, node.Message} {
		if part != "" {
			reason += ": " + part
		}
	}
	return reason
}

// Strangers are reported and do not fail the gate: a node that somebody adds by hand, or one that is about to be removed, makes the
// declared ones no less healthy.
func noStrangers(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "no undeclared node has joined", Evaluate: func(seen *Cluster) []Result {
		switch {
		case seen.Nodes.Err != nil:
			return []Result{unreadable("", "nodes", seen.Nodes.Err)}
		case !seen.Nodes.Synced:
			return []Result{unseen("", "nodes")}
		}
		declared := map[string]bool{}
		for _, node := range spec.Nodes {
			declared[node.Name] = true
		}
		var results []Result
		for _, node := range seen.Nodes.Items {
			if !declared[node.Name] {
				results = append(results, Result{
					Subject: node.Name, Verdict: Warning, Command: "kubectl get node -o wide " + node.Name,
					Reason: "is a node of the cluster and not declared; declare it, or remove it from the cluster",
				})
			}
		}
		if len(results) == 0 {
			return []Result{passed("")}
		}
		return results
	}}
}

func unreadable(subject, what string, err *Broken) Result {
	result := failed(subject, fmt.Sprintf("%s cannot be read: %s", what, err.Reason))
	result.Hopeless = err.Hopeless
	return result
}
