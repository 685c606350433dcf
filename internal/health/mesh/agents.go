package mesh

import (
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var agentsSee = check{
	Name:   "every agent sees every peer as connected and ready, with all of its nodes",
	Looks:  "`cilium-dbg status` in each agent: connected, ready, the declared id, as many nodes as kvstoremesh has copied",
	ByHand: "kubectl -n NAMESPACE exec POD -c cilium-agent -- cilium-dbg status --all-clusters",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return seen.each(spec, func(peer Peer) (results []health.Result) {
			if result, missing := seen.Agents.Unread(peer.Name, "agent pods"); missing {
				return []health.Result{result.WithCommand(listAgents)}
			}
			if cause := seen.notCopied(spec, peer); cause != "" {
				return []health.Result{health.Block(peer.Name, cause)}
			}
			for _, agent := range seen.agents(spec) {
				results = append(results, seen.sees(spec, agent, peer))
			}
			if len(results) == 0 {
				return []health.Result{health.Fail(peer.Name, "no Cilium agent is Ready").WithCommand(listAgents)}
			}
			return results
		})
	},
}

// listAgents is the command that shows the agents.
const listAgents = "kubectl -n NAMESPACE get pods -o wide -l " + cluster.CiliumAgentSelector

// agent is a node and its agent.
type agent struct {
	node string
	pod  kube.Pod // without a name if the node has no Ready agent
}

// agents returns the agents that must see the peers: the declared nodes' agents, or all Ready agents.
func (seen *Cluster) agents(spec *Spec) []agent {
	var agents []agent
	byNode := map[string]kube.Pod{}
	for _, pod := range seen.AnsweringAgents() {
		byNode[pod.Node] = pod
		if len(spec.Nodes) == 0 {
			agents = append(agents, agent{node: pod.Node, pod: pod})
		}
	}
	for _, node := range spec.Nodes {
		agents = append(agents, agent{node: node, pod: byNode[node]})
	}
	return agents
}

// notCopied returns why the agents cannot see a peer; "" if they can, or if they connect to the peer themselves.
func (seen *Cluster) notCopied(spec *Spec, peer Peer) string {
	switch {
	case !seen.copying():
		if seen.Answers[peer.Name].TLS != "" {
			return "the certificate of " + peer.Name + " is not valid"
		}
		return ""
	case !health.Hold(serverRunning.Judge(spec, seen)):
		return "the mesh API server is not Ready"
	case !health.Hold([]health.Result{seen.copied(spec, peer)}):
		return "kvstoremesh has not copied the state of " + peer.Name
	}
	return ""
}

// sees judges what an agent reports of a peer.
func (seen *Cluster) sees(spec *Spec, agent agent, peer Peer) health.Result {
	subject := peer.Name + " on " + agent.node
	if agent.pod.Name == "" {
		return health.Fail(subject, "no Cilium agent is Ready on the node").WithCommand(listAgents)
	}
	report := seen.Reports[agent.pod.Name]
	if !report.Asked {
		return health.NotSeen(subject, "the agent's report")
	}
	remark, problem := report.judge(spec, peer, seen.nodes(peer))
	if problem == "" {
		result := health.Pass(subject)
		if !seen.copying() {
			result.Reason = remark
		}
		return result
	}
	result := health.Fail(subject, problem).WithEvidence(report.evidence(peer)...).
		WithCommand(fmt.Sprintf("kubectl -n %s exec %s -c %s -- cilium-dbg troubleshoot clustermesh %s",
			agent.pod.Namespace, agent.pod.Name, cluster.CiliumAgentContainer, peer.Name))
	if _, configured := report.Peers[peer.Name]; report.Err == "" && !configured {
		return spec.withInlineRemedy(result)
	}
	return result.Asks(health.Question{ // what Cilium's own command finds wrong in the connection
		Kind: health.MeshFindings, Object: peer.Name,
		Namespace: agent.pod.Namespace, Name: agent.pod.Name, Container: cluster.CiliumAgentContainer,
	})
}
