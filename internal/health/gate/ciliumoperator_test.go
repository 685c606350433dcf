package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.Operators.Synced = true
	for _, name := range []string{"cilium-operator-a", "cilium-operator-b"} {
		pod := kube.Pod{Namespace: "kube-system", Name: name, Node: spec.Nodes[0].Name, Phase: "Running", Ready: true}
		seen.Operators.Items = append(seen.Operators.Items, pod)
	}
})

var _ = fault("operator-pending-on-many-nodes", func(c *Cluster) {
	c.Operators.Items[1] = kube.Pod{Namespace: "kube-system", Name: "cilium-operator-b", Phase: "Pending",
		Unscheduled: "0/5 nodes are available"}
})

var _ = fault("operator-missing", func(c *Cluster) { c.Operators.Items = nil })

var pendingOperator = kube.Pod{
	Namespace: "kube-system", Name: "cilium-operator-b", Phase: "Pending", Unscheduled: "didn't match pod anti-affinity rules",
}

var _ = scenario("one-node", true, func() (*Spec, *Cluster) {
	spec := only(1)
	seen := healthy(spec)
	seen.Operators.Items[1] = pendingOperator
	return spec, seen
})

func TestGate_OnePendingOperatorIsNormalOnOneUsableNodeOnly(t *testing.T) {
	for nodes, holds := range map[int]bool{1: true, 2: false, 5: false} {
		spec := only(nodes)
		seen := healthy(spec)
		seen.Operators.Items[1] = pendingOperator
		assert.Equal(t, holds, health.Hold(Evaluate(spec, seen)), "%d nodes", nodes)
		for i := range seen.Nodes.Items[1:] {
			seen.Nodes.Items[1+i].Cordoned = true
		}
		assert.True(t, health.Hold(Evaluate(spec, seen)), "%d nodes, one usable", nodes)
	}
}
