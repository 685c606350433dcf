package gate

import (
	"github.com/slipway-platform/slipway/internal/health"
)

// Without a CNI no node is Ready, so the check needs Cilium. A node that is not Ready because it has no Ready Cilium agent is blocked.
var nodeReady = check{
	Name:   "every declared node is Ready",
	Looks:  "the Ready condition of the Node object",
	ByHand: "kubectl describe node NODE; talosctl -n ADDRESS logs kubelet",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			if node.Ready == "True" {
				result := health.Pass(want.Name)
				result.Lost = node.Lost
				return result
			}
			if down := seen.kubeletDown(want); down != "" {
				return health.Block(want.Name, down)
			}
			if other := seen.misnamed(want); other != "" {
				return health.Block(want.Name, want.Name+" is registered as "+other)
			}
			if agent, runs := seen.agentOn(want.Name); node.Ready == "False" && seen.Agents.Synced && (!runs || !agent.Ready) {
				return health.Block(want.Name, "no Cilium agent is Ready on "+want.Name)
			}
			result := health.Fail(want.Name, health.NotReady(node.Ready, node.Reason, node.Message))
			result.Lost = node.Lost
			return result.WithEvidence(node.taints()...).
				Asks(health.Question{Kind: health.Events, Object: "Node", Name: want.Name}, want.log("kubelet"))
		})
	}),
}
