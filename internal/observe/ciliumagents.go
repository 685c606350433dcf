package observe

import (
	"context"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// statusFresh is how old an agent's status may be for a confirmation: its readiness is watched, and is nearly the same.
const statusFresh = 30 * time.Second

// agents asks each Ready agent of Cilium for its status and for the nodes that it reaches.
func (g *Gate) agents() []asker {
	slots := make(chan struct{}, agentsAtOnce)
	return []asker{g.agentStatus(slots), g.agentHealth(slots)}
}

// agentStatus asks each agent for its status.
func (g *Gate) agentStatus(slots chan struct{}) *inquiry[gate.Cluster, gate.CiliumStatus] {
	return &inquiry[gate.Cluster, gate.CiliumStatus]{
		store: g.store, slots: slots, again: pollEvery, fresh: statusFresh, targets: g.readyAgents,
		answers: func(seen *gate.Cluster) *map[string]gate.CiliumStatus { return &seen.CiliumStatus },
		ask: func(ctx context.Context, _, pod string) gate.CiliumStatus {
			return g.kube.ciliumStatus(ctx, g.spec.Cilium.Namespace, pod)
		},
		silent: func(status gate.CiliumStatus) bool { return status.Err != "" },
		good: func(seen *gate.Cluster, node string) bool {
			status := seen.CiliumStatus[node]
			return status.Asked && status.Err == "" && len(status.Problems) == 0
		},
	}
}

// agentHealth asks each agent for the nodes that it reaches, while all agents are Ready: none can reach a missing agent.
func (g *Gate) agentHealth(slots chan struct{}) *inquiry[gate.Cluster, gate.CiliumHealth] {
	return &inquiry[gate.Cluster, gate.CiliumHealth]{
		store: g.store, slots: slots, again: pollEvery, fresh: fresh, targets: g.readyAgents,
		answers: func(seen *gate.Cluster) *map[string]gate.CiliumHealth { return &seen.CiliumHealth },
		ask: func(ctx context.Context, _, pod string) gate.CiliumHealth {
			ready := map[string]time.Time{}
			g.read(func(seen *gate.Cluster) {
				for node, pod := range answering(seen) {
					ready[node] = pod.ReadySince
				}
			})
			return g.kube.ciliumHealth(ctx, g.spec.Cilium.Namespace, pod, ready)
		},
		silent: func(health gate.CiliumHealth) bool { return health.Err != "" },
		good: func(seen *gate.Cluster, node string) bool {
			return len(g.readyAgents(seen)) < len(g.spec.Nodes) || seen.CiliumHealth[node].Healthy() && g.knowsAll(seen.CiliumHealth[node])
		},
	}
}

// readyAgents returns the names of the agents' pods that can be asked, by declared node.
func (g *Gate) readyAgents(seen *gate.Cluster) map[string]string {
	pods, ready := answering(seen), map[string]string{}
	for _, node := range g.spec.Nodes {
		if pod, is := pods[node.Name]; is {
			ready[node.Name] = pod.Name
		}
	}
	return ready
}

// answering returns the agents that can be asked, by node.
func answering(seen *gate.Cluster) map[string]kube.Pod {
	return xslices.ToMap(kube.Answering(seen.Agents.Items), func(pod kube.Pod) (string, kube.Pod) { return pod.Node, pod })
}

// knowsAll reports whether an agent knows every declared node.
func (g *Gate) knowsAll(health gate.CiliumHealth) bool {
	for _, node := range g.spec.Nodes {
		if _, known := health.Peers[node.Name]; !known {
			return false
		}
	}
	return true
}
