package gate

import (
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.Agents.Synced = true
	for _, node := range spec.Nodes {
		seen.Agents.Items = append(seen.Agents.Items, kube.Pod{
			Namespace: "kube-system", Name: "cilium-" + node.Name, Node: node.Name, Phase: "Running", Ready: true,
			Containers: []kube.Container{
				{Name: "config", Image: "quay.io/cilium/cilium:v1.18.7@sha256:aa", Init: true, Ready: true},
				{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.18.7@sha256:aa", Ready: true},
			},
		})
	}
})

var _ = fault("agent-missing", func(c *Cluster) {
	c.Agents.Items = c.Agents.Items[:4]
	c.Nodes.Items[4].Ready, c.Nodes.Items[4].Taints = "False", []string{"storage:NoExecute"}
})

var _ = fault("agent-crashing", func(c *Cluster) {
	agentFails(c, "waiting: CrashLoopBackOff: back-off 1m20s restarting failed container", "terminated: Error: exit code 1", 4)
})

var _ = fault("agent-image-cannot-be-pulled", func(c *Cluster) {
	agentFails(c, "waiting: ImagePullBackOff: Back-off pulling image \"quay.io/cilium/cilium:v1.18.7\": not found", "", 0)
})

var _ = fault("agent-starts", func(c *Cluster) { agentFails(c, "running, not ready", "", 0) })

var _ = fault("agent-of-another-version",
	func(c *Cluster) { agentOf(c, "infra-cp-2").Containers[1].Image = "quay.io/cilium/cilium:v1.18.70" })

var _ = fault("agent-being-replaced", func(c *Cluster) { agentOf(c, "infra-cp-2").Deleting = true })

// agentFails makes the agent of infra-cp-2 not Ready, with the consequences for its node.
func agentFails(seen *Cluster, state, last string, restarts int) {
	pod := agentOf(seen, "infra-cp-2")
	pod.Ready = false
	pod.Containers[1].Ready, pod.Containers[1].State, pod.Containers[1].Last, pod.Containers[1].Restarts = false, state, last, restarts
	seen.Nodes.Items[1].Ready, seen.Nodes.Items[1].Reason = "False", "KubeletNotReady"
	delete(seen.CiliumHealth, "infra-cp-2")
	delete(seen.CiliumStatus, "infra-cp-2")
}
