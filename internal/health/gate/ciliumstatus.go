package gate

import (
	"net/netip"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// CiliumStatus is the answer of one agent to `cilium-dbg status`.
type CiliumStatus struct {
	Asked    bool
	Err      string         // why there is no status
	Problems []string       // failed components, each with the agent's message
	Remarks  []string       // warnings, and what the agent retries without success
	Pools    []netip.Prefix // the ranges from which it gives its pods addresses
}

// A Ready agent may still have no connection to the API server or to its key-value store: readiness only shows that it has started.
var ciliumStatus = check{
	Name:   "every Cilium agent reports no failure",
	Looks:  "`cilium-dbg status` in each agent",
	ByHand: "kubectl -n NAMESPACE exec POD -c cilium-agent -- cilium-dbg status --verbose",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := agentsNotReady(spec, seen); results != nil {
			return results
		}
		var results []health.Result
		for _, node := range spec.Nodes {
			status := seen.CiliumStatus[node.Name]
			var result health.Result
			switch {
			case !status.Asked:
				result = health.NotSeen(node.Name, "its status")
			case status.Err != "":
				result = health.Fail(node.Name, "its status cannot be read: "+status.Err)
				if why := seen.Uncertified[node.Name]; why != "" { // then its kubelet runs no commands
					result.Reason += "; " + why
				}
			case len(status.Problems) > 0:
				result = health.Fail(node.Name, strings.Join(status.Problems, "; "))
			default:
				result = health.Pass(node.Name)
				result.Reason = strings.Join(status.Remarks, "; ")
			}
			if result.Verdict == health.Failed && !result.Unseen {
				result.Evidence = status.Remarks
				result = result.Asks(seen.agentLog(node.Name)...)
			}
			results = append(results, result)
		}
		return results
	}),
}

// agentLog asks for the log of a node's agent, if there is one.
func (seen *Cluster) agentLog(node string) []health.Question {
	pod, found := seen.agentOn(node)
	if !found {
		return nil
	}
	return []health.Question{{Kind: health.PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: cluster.CiliumAgentContainer}}
}
