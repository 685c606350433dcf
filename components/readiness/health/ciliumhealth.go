package health

import (
	"fmt"
	"maps"
	"slices"
)

// Each agent is asked: a path that works in one direction only is broken.
func ciliumReachability(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every node reaches every node and its endpoints through Cilium", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		var results []Result
		for _, node := range spec.Nodes {
			report := seen.CiliumHealth[node.Name]
			if !report.Asked {
				result := unseen(node.Name, "cilium-health's report")
				// Once the pods are known, the missing report is news: there is no Ready agent to ask.
				result.Unseen = !seen.Agents.Synced
				results = append(results, result)
				continue
			}
			result := passed(node.Name)
			if report.Err != "" {
				result = failed(node.Name, "cilium-health's report cannot be had: "+report.Err)
			} else if problems := peerProblems(spec.Nodes, report.Peers); len(problems) > 0 {
				result = failed(node.Name, problems[0])
				if more := len(problems) - 1; more > 0 {
					result.Reason += fmt.Sprintf(" (and %d more)", more)
				}
				result.Evidence = problems[1:]
			}
			if result.Verdict == Failed {
				result.Command = fmt.Sprintf("kubectl -n %s exec %s -c cilium-agent -- cilium-health status", spec.Cilium.Namespace, report.Pod)
			}
			results = append(results, result)
		}
		return results
	}}
}

func peerProblems(nodes []Node, peers map[string]CiliumPeer) []string {
	var problems []string
	for _, node := range nodes {
		peer, known := peers[node.Name]
		switch {
		case !known:
			problems = append(problems, "does not know "+node.Name+" yet")
		case peer.Host != "":
			problems = append(problems, fmt.Sprintf("does not reach the host of %s: %s", node.Name, peer.Host))
		case peer.Endpoint != "":
			problems = append(problems, fmt.Sprintf("does not reach the endpoint of %s: %s", node.Name, peer.Endpoint))
		}
	}
	return problems
}

// Healthy reports whether the agent's report is there and reaches all of its peers.
func (h CiliumHealth) Healthy() bool {
	return h.Asked && h.Err == "" && len(h.Peers) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(h.Peers)), func(p CiliumPeer) bool {
		return p.Host != "" || p.Endpoint != ""
	})
}
