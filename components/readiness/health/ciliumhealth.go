package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Each agent is asked: a path that works in one direction only is broken.
func ciliumReachability(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every node reaches every node and its endpoints through Cilium", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		if results := agentsReady(spec, seen); results != nil {
			return results
		}
		results, shunned := lonelyNodes(spec, seen)
		for _, node := range spec.Nodes {
			report := seen.CiliumHealth[node.Name]
			result := passed(node.Name)
			if !report.Asked {
				result = unseen(node.Name, "cilium-health's report")
			} else if report.Err != "" {
				result = failed(node.Name, "cilium-health's report cannot be had: "+report.Err)
			} else if problems := peerProblems(spec.Nodes, report.Peers, shunned); len(problems) > 0 {
				result = failed(node.Name, problems[0])
				if more := len(problems) - 1; more > 0 {
					result.Reason += fmt.Sprintf(" (and %d more)", more)
				}
				result.Evidence = problems[1:]
			} else if !report.Healthy() && len(shunned) > 0 {
				// All that it misses is said about the nodes it misses.
				result = blocked(node.Name, strings.Join(slices.Sorted(maps.Keys(shunned)), ", ")+" is not reached by most others")
			}
			if result.Verdict == Failed && !result.Unseen {
				result.Command = fmt.Sprintf("kubectl -n %s exec %s -c cilium-agent -- cilium-health status", spec.Cilium.Namespace, report.Pod)
			}
			results = append(results, result)
		}
		return results
	}}
}

// lonelyNodes are those that most others do not reach: the reason lies there, so it is said once about the one node, not by all others.
func lonelyNodes(spec *GateSpec, seen *Cluster) (results []Result, shunned map[string]bool) {
	shunned = map[string]bool{}
	for _, to := range spec.Nodes {
		var missing []string
		why := ""
		for _, from := range spec.Nodes {
			peer, known := seen.CiliumHealth[from.Name].Peers[to.Name]
			if from.Name == to.Name || !known || peer.problem() == "" {
				continue
			}
			missing = append(missing, from.Name)
			why = or(why, peer.problem())
		}
		others := len(spec.Nodes) - 1
		if len(missing) < 2 || len(missing)*2 <= others {
			continue
		}
		shunned[to.Name] = true
		result := failed(to.Name, fmt.Sprintf("is not reached by %d of %d others: %s", len(missing), others, why))
		result.Evidence = []string{"not reached from " + strings.Join(missing, ", ")}
		result.Command = fmt.Sprintf("kubectl -n %s exec %s -c cilium-agent -- cilium-health status", spec.Cilium.Namespace, seen.CiliumHealth[missing[0]].Pod)
		if pod, runs := seen.agentOn(to.Name); runs {
			result = result.asks(Question{Kind: PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: "cilium-agent"})
		}
		results = append(results, result)
	}
	return results, shunned
}

func peerProblems(nodes []Node, peers map[string]CiliumPeer, shunned map[string]bool) []string {
	var problems []string
	for _, node := range nodes {
		peer, known := peers[node.Name]
		switch {
		case !known:
			problems = append(problems, "does not know "+node.Name+" yet")
		case shunned[node.Name]:
		case peer.Host != "":
			problems = append(problems, fmt.Sprintf("does not reach the host of %s: %s", node.Name, peer.Host))
		case peer.Endpoint != "":
			problems = append(problems, fmt.Sprintf("does not reach the endpoint of %s: %s", node.Name, peer.Endpoint))
		}
	}
	return problems
}

// problem is what is wrong with the way to a peer; "" if nothing is.
func (p CiliumPeer) problem() string {
	if p.Host != "" {
		return "its host, " + p.Host
	}
	if p.Endpoint != "" {
		return "its endpoint, " + p.Endpoint
	}
	return ""
}

// Healthy reports whether the agent's report is there and reaches all of its peers.
func (h CiliumHealth) Healthy() bool {
	return h.Asked && h.Err == "" && len(h.Peers) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(h.Peers)), func(p CiliumPeer) bool {
		return p.problem() != ""
	})
}
