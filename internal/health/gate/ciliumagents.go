package gate

import (
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var ciliumAgents = check{
	Name:   "a Cilium agent is Ready on every node",
	Looks:  "pods with the labels `k8s-app=cilium`, of the declared version",
	ByHand: "kubectl -n NAMESPACE describe pod POD; kubectl -n NAMESPACE logs POD -c cilium-agent --previous",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := unread(seen, "", "agent pods", seen.Agents); results != nil {
			return results
		}
		if seen.AgentSets.Synced && len(seen.AgentSets.Items) == 0 {
			return []health.Result{health.Block("", "Cilium is not installed")}
		}
		var results []health.Result
		for _, want := range spec.Nodes {
			pod, scheduled := seen.agentOn(want.Name)
			down := seen.nodeDown(want)
			switch {
			case down != "" && (!scheduled || !pod.Ready):
				results = append(results, health.Block(want.Name, down))
			case !scheduled:
				results = append(results, noAgent(want, seen))
			default:
				results = append(results, agentReady(want.Name, pod, spec.Cilium.Version))
			}
		}
		return results
	}),
}

func noAgent(want Machine, seen *Cluster) health.Result {
	node, _ := seen.node(want.Name)
	result := health.Fail(want.Name, "no agent pod is on this node").WithEvidence(node.taints()...).
		WithCommand("kubectl -n NAMESPACE describe daemonset -l " + cluster.CiliumAgentSelector)
	for _, set := range seen.AgentSets.Items {
		result = result.Asks(set.Events())
	}
	return result
}

func agentReady(subject string, pod kube.Pod, version string) health.Result {
	result := pod.ReadyResult(subject)
	if result.Verdict != health.Passed || version == "" || pod.Runs(version) {
		return result
	}
	result = health.Fail(subject, "pod "+pod.Namespace+"/"+pod.Name+" does not run version "+version)
	for _, c := range pod.Containers {
		if !c.Init {
			result.Evidence = append(result.Evidence, "container "+c.Name+" runs "+c.Image)
		}
	}
	result.Lost = pod.Lost
	return result.WithCommand(fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)).Asks(pod.Events())
}

// agentOn returns the agent pod of a node.
func (seen *Cluster) agentOn(node string) (kube.Pod, bool) { return podOn(node, seen.Agents.Items) }

// podOn returns the pod of a node. A pod that is being deleted counts only if there is no other.
func podOn(node string, pods []kube.Pod) (on kube.Pod, found bool) {
	for _, pod := range pods {
		if pod.Node == node && (!found || on.Deleting) {
			on, found = pod, true
		}
	}
	return on, found
}
