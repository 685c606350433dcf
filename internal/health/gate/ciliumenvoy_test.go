package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var envoyLabels = map[string]string{"k8s-app": "cilium-envoy"}

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	set := rolledOut("DaemonSet", "cilium-envoy", len(spec.Nodes))
	set.Selector = envoyLabels
	seen.EnvoySets = health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{set}}
	seen.Envoys.Synced = true
	for _, node := range spec.Nodes {
		seen.Envoys.Items = append(seen.Envoys.Items, kube.Pod{
			Namespace: "kube-system", Name: "cilium-envoy-" + node.Name, Labels: envoyLabels, Node: node.Name, Phase: "Running", Ready: true,
			Containers: []kube.Container{{Name: "cilium-envoy", Image: "quay.io/cilium/cilium-envoy:v1.35.9", Ready: true}},
		})
	}
})

var _ = fault("envoy-crashing", func(c *Cluster) {
	pod := &c.Envoys.Items[1]
	pod.Ready = false
	pod.Containers[0].Ready, pod.Containers[0].Restarts = false, 4
	pod.Containers[0].State = "waiting: CrashLoopBackOff: back-off 1m20s restarting failed container"
})

var _ = fault("envoy-missing", func(c *Cluster) {
	c.Envoys.Items = c.Envoys.Items[:4]
	c.Nodes.Items[4].Taints = []string{"storage:NoExecute"}
})

var _ = fault("envoy-is-not-scheduled", func(c *Cluster) {
	pod := &c.Envoys.Items[4]
	pod.Node, pod.Ready, pod.Unscheduled = "", false, "0/5 nodes are available: 1 Insufficient memory."
})

var _ = fault("envoy-runs-nowhere", func(c *Cluster) { c.Envoys.Items, c.EnvoySets.Items[0].Observed = nil, false })

var _ = fault("envoy-not-installed", func(c *Cluster) { c.Envoys.Items, c.EnvoySets.Items = nil, nil })

var _ = fault("envoy-not-rolled-out", func(c *Cluster) { c.EnvoySets.Items[0].Updated = 3 })

var _ = fault("envoys-cannot-be-listed", func(c *Cluster) { c.Envoys.Err = &health.Broken{Reason: "Forbidden", Hopeless: true} })

var _ = scenario("without-envoy", true, func() (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	seen.Envoys.Items, seen.EnvoySets.Items = nil, nil
	seen.Config.Items[0]["external-envoy-proxy"] = "false"
	return spec, seen
})

var _ = scenario("envoy-on-selected-nodes", true, func() (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	seen.Envoys.Items = seen.Envoys.Items[3:]
	seen.EnvoySets.Items[0].Desired, seen.EnvoySets.Items[0].Updated = 2, 2
	return spec, seen
})

func TestGate_APodOfEnvoyOnANodeThatIsLeftBehindReplacesNoOther(t *testing.T) {
	spec, seen := leftBehind("Unknown")
	left := seen.Envoys.Items[4]
	left.Name, left.Node, left.Ready = "cilium-envoy-old", "talos-xyz", false
	seen.Envoys.Items = append(seen.Envoys.Items, left)
	seen.EnvoySets.Items[0].Desired++
	assert.True(t, health.Hold(Evaluate(spec, seen)))
	seen.Envoys.Items = append(seen.Envoys.Items[:4], left)
	assert.False(t, health.Hold(Evaluate(spec, seen)))
}
