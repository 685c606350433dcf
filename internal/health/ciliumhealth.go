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
		var results []Result
		lonely := lonelyNodes(spec, seen)
		for _, node := range spec.Nodes {
			result := reach(spec, node, seen.CiliumHealth[node.Name], lonely)
			// One result a node, for a wait that follows it: what others say of it weighs more than what it says of others.
			if others, is := lonely[node.Name]; is && !result.Unseen {
				if result.Verdict == Failed {
					others.Evidence = append(others.Evidence, "itself "+result.Reason)
				}
				result = others
			}
			results = append(results, result)
		}
		return results
	}}
}

// reach is what one agent says of the others, those apart that hardly anybody reaches.
func reach(spec *GateSpec, node Node, report CiliumHealth, lonely map[string]Result) Result {
	result := passed(node.Name)
	switch problems := peerProblems(spec.Nodes, report.Peers, lonely); {
	case !report.Asked:
		return unseen(node.Name, "cilium-health's report")
	case report.Err != "":
		result = failed(node.Name, "cilium-health's report cannot be had: "+report.Err)
	case len(problems) > 0:
		result = failed(node.Name, problems[0])
		if more := len(problems) - 1; more > 0 {
			result.Reason += fmt.Sprintf(" (and %d more)", more)
		}
		result.Evidence = problems[1:]
	case !report.Healthy() && len(lonely) > 0:
		return blocked(node.Name, strings.Join(slices.Sorted(maps.Keys(lonely)), ", ")+" is not reached by most others")
	default:
		return result
	}
	result.Command = fmt.Sprintf("kubectl -n %s exec %s -c cilium-agent -- cilium-health status", spec.Cilium.Namespace, report.Pod)
	return result
}

// lonelyNodes are those that most others do not reach: the reason lies there, so it is said once about the one node, not by all others.
func lonelyNodes(spec *GateSpec, seen *Cluster) map[string]Result {
	lonely := map[string]Result{}
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
		result := failed(to.Name, fmt.Sprintf("is not reached by %d of %d others: %s", len(missing), others, why))
		result.Evidence = []string{"not reached from " + strings.Join(missing, ", ")}
		result.Command = fmt.Sprintf("kubectl -n %s exec %s -c cilium-agent -- cilium-health status", spec.Cilium.Namespace, seen.CiliumHealth[missing[0]].Pod)
		if pod, runs := seen.agentOn(to.Name); runs {
			result = result.asks(Question{Kind: PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: "cilium-agent"})
		}
		lonely[to.Name] = result
	}
	return lonely
}

func peerProblems(nodes []Node, peers map[string]CiliumPeer, lonely map[string]Result) []string {
	var problems []string
	for _, node := range nodes {
		peer, known := peers[node.Name]
		_, alone := lonely[node.Name]
		switch {
		case !known:
			problems = append(problems, "does not know "+node.Name+" yet")
		case alone:
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
