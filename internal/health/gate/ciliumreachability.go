package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// CiliumHealth is the answer of one agent to `cilium-health status`.
type CiliumHealth struct {
	Asked bool
	Err   string                // why there is no report
	Peers map[string]CiliumPeer // by node name, the agent's own node included
}

// CiliumPeer is a node as one agent sees it. A path is "" if it works, else the problem.
type CiliumPeer struct {
	Host     string
	Endpoint string
}

// Every agent is asked: a path may work in one direction only.
var ciliumReachability = check{
	Name:   "every node reaches every node and its endpoints through Cilium",
	Looks:  "`cilium-health status` in each agent: host and endpoint of every other node, both families",
	ByHand: "kubectl -n NAMESPACE exec POD -c cilium-agent -- cilium-health status",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := agentsNotReady(spec, seen); results != nil {
			return results
		}
		var results []health.Result
		unreachable := unreachableNodes(spec, seen)
		for _, node := range spec.Nodes {
			result := reach(spec, node, seen.CiliumHealth[node.Name], unreachable)
			// A wait compares one result for each node. Whether the others reach the node is more important than what the node reaches.
			if byOthers, is := unreachable[node.Name]; is && !result.Unseen {
				if result.Verdict == health.Failed {
					byOthers.Evidence = append(byOthers.Evidence, "itself "+result.Reason)
				}
				result = byOthers
			}
			results = append(results, result)
		}
		return results
	}),
}

// reach judges the report of one agent, without the nodes that most others do not reach.
func reach(spec *Spec, node Machine, report CiliumHealth, unreachable map[string]health.Result) health.Result {
	switch problems := peerProblems(spec.Nodes, report.Peers, unreachable); {
	case !report.Asked:
		return health.NotSeen(node.Name, "cilium-health's report")
	case report.Err != "":
		return health.Fail(node.Name, "cilium-health's report cannot be read: "+report.Err)
	case len(problems) > 0:
		result := health.Fail(node.Name, problems[0])
		if more := len(problems) - 1; more > 0 {
			result.Reason += fmt.Sprintf(" (and %d more)", more)
		}
		result.Evidence = problems[1:]
		return result
	case !report.Healthy() && len(unreachable) > 0:
		return health.Block(node.Name, strings.Join(slices.Sorted(maps.Keys(unreachable)), ", ")+" is not reached by most others")
	}
	return health.Pass(node.Name)
}

// unreachableNodes returns a result for each node that most others do not reach. The cause is on that node, so the others do not fail.
func unreachableNodes(spec *Spec, seen *Cluster) map[string]health.Result {
	unreachable := map[string]health.Result{}
	for _, to := range spec.Nodes {
		var from []string
		why := ""
		for _, node := range spec.Nodes {
			peer, known := seen.CiliumHealth[node.Name].Peers[to.Name]
			if node.Name == to.Name || !known || peer.problem() == "" {
				continue
			}
			from = append(from, node.Name)
			why = cmp.Or(why, peer.problem())
		}
		others := len(spec.Nodes) - 1
		if len(from) < 2 || len(from)*2 <= others {
			continue
		}
		pod, _ := seen.agentOn(from[0])
		unreachable[to.Name] = health.Fail(to.Name, fmt.Sprintf("is not reached by %d of %d others: %s", len(from), others, why)).
			WithEvidence("not reached from " + strings.Join(from, ", ")).
			WithCommand(fmt.Sprintf("kubectl -n NAMESPACE exec %s -c cilium-agent -- cilium-health status", pod.Name)).
			Asks(seen.agentLog(to.Name)...)
	}
	return unreachable
}

func peerProblems(nodes []Machine, peers map[string]CiliumPeer, unreachable map[string]health.Result) []string {
	var problems []string
	for _, node := range nodes {
		peer, known := peers[node.Name]
		_, reported := unreachable[node.Name]
		switch {
		case !known:
			problems = append(problems, "does not know "+node.Name+" yet")
		case reported:
		case peer.Host != "":
			problems = append(problems, fmt.Sprintf("does not reach the host of %s: %s", node.Name, peer.Host))
		case peer.Endpoint != "":
			problems = append(problems, fmt.Sprintf("does not reach the endpoint of %s: %s", node.Name, peer.Endpoint))
		}
	}
	return problems
}

// problem returns what is wrong with the path to a peer; "" if it works.
func (p CiliumPeer) problem() string {
	if p.Host != "" {
		return "its host, " + p.Host
	}
	if p.Endpoint != "" {
		return "its endpoint, " + p.Endpoint
	}
	return ""
}

// Healthy reports whether there is a report and the agent reaches all of its peers.
func (h CiliumHealth) Healthy() bool {
	return h.Asked && h.Err == "" && len(h.Peers) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(h.Peers)), func(p CiliumPeer) bool {
		return p.problem() != ""
	})
}
