package health

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A node that nobody has declared is reported and not judged: one that somebody adds by hand, or that is about to be removed, makes the
// declared ones no less healthy.
func nodesRegistered(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every declared node is registered under its name", Evaluate: func(seen *Cluster) []Result {
		if results := unread(seen, "nodes", seen.Nodes); results != nil {
			return results
		}
		known := map[string]bool{}
		for _, node := range slices.Concat(spec.Nodes, spec.Others) {
			known[node.Name] = true
		}
		var results []Result
		for _, want := range spec.Nodes {
			_, registered := seen.kubeNode(want.Name)
			name := seen.misnamed(want)
			switch {
			case name != "":
				known[name] = true
				result := failed(want.Name, fmt.Sprintf("node %s is registered as %s instead of %s; give it its name, then remove the other: kubectl delete node %s", want.Address, name, want.Name, name))
				result.Hopeless = true
				result.Command = fmt.Sprintf("talosctl -n %s get hostnamestatus,nodename; kubectl get node -o wide %s", want.Address, name)
				results = append(results, result)
			case registered:
				results = append(results, passed(want.Name))
			default:
				results = append(results, notRegistered(want, seen))
			}
		}
		for _, node := range seen.Nodes.Items {
			if !known[node.Name] {
				result := skipped(node.Name, "is registered and not declared, so nothing looks at it; declare it, or remove it from the cluster")
				result.Command = "kubectl get node -o wide " + node.Name
				results = append(results, result)
			}
		}
		return results
	}}
}

func notRegistered(want Node, seen *Cluster) Result {
	if down := seen.kubeletDown(want); down != "" {
		return blocked(want.Name, down)
	}
	if seen.Talos[want.Name].Err != nil {
		return blocked(want.Name, "the Talos API of "+want.Name+" does not answer")
	}
	result := failed(want.Name, fmt.Sprintf("is not registered; its kubelet at %s has not joined", want.Address))
	result.Command = fmt.Sprintf("talosctl -n %s logs kubelet", want.Address)
	return result.asks(Question{Kind: ServiceLog, Name: "kubelet", Address: want.Address, Node: want.Name})
}

func (n KubeNode) answersAt(want Node) bool {
	return slices.ContainsFunc(n.Addresses, func(address string) bool {
		return sameAddress(address, want.Address) || sameAddress(address, want.Address6)
	})
}

func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x == y
}

// The first address is the one that everything uses that knows only one.
func nodeAddresses(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every node has its declared addresses, in their order", Evaluate: func(seen *Cluster) []Result {
		return eachRegistered(spec, seen, func(want Node, node KubeNode) Result {
			if slices.EqualFunc(node.Addresses, want.addresses(), sameAddress) {
				return passed(want.Name)
			}
			result := failed(want.Name, fmt.Sprintf("has the node IPs %s instead of %s", or(strings.Join(node.Addresses, ", "), "none"), strings.Join(want.addresses(), ", ")))
			result.Command = fmt.Sprintf("talosctl -n %s get nodeips; kubectl get node -o wide %s", want.Address, want.Name)
			return result
		})
	}}
}

// eachRegistered judges the declared nodes that are registered; what keeps the others is said by another check.
func eachRegistered(spec *GateSpec, seen *Cluster, judge func(Node, KubeNode) Result) []Result {
	if results := unread(seen, "nodes", seen.Nodes); results != nil {
		return results
	}
	var results []Result
	for _, want := range spec.Nodes {
		if node, registered := seen.kubeNode(want.Name); registered {
			results = append(results, judge(want, node))
		} else {
			results = append(results, blocked(want.Name, want.Name+" is not registered"))
		}
	}
	return results
}

// Without a CNI no node is Ready, and none need be. With one, a node that is not Ready for lack of a Cilium agent is a consequence.
func nodesReady(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every declared node is Ready", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		return eachRegistered(spec, seen, func(want Node, node KubeNode) Result {
			if node.Ready == "True" {
				result := passed(want.Name)
				result.Lost = node.Lost
				return result
			}
			if down := seen.kubeletDown(want); down != "" {
				return blocked(want.Name, down)
			}
			if other := seen.misnamed(want); other != "" {
				return blocked(want.Name, want.Name+" is registered as "+other)
			}
			if agent, runs := seen.agentOn(want.Name); node.Ready == "False" && seen.Agents.Synced && (!runs || !agent.Ready) {
				return blocked(want.Name, "no Cilium agent is Ready on "+want.Name)
			}
			result := failed(want.Name, notReady(node))
			result.Lost = node.Lost
			if len(node.Taints) > 0 {
				result.Evidence = []string{"taints: " + strings.Join(node.Taints, ", ")}
			}
			result.Command = fmt.Sprintf("kubectl describe node %s; talosctl -n %s logs kubelet", want.Name, want.Address)
			return result.asks(Question{Kind: Events, Object: "Node", Name: want.Name},
				Question{Kind: ServiceLog, Name: "kubelet", Address: want.Address, Node: want.Name})
		})
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
