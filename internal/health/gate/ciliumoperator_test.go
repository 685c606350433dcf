package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/cluster"
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

func TestGate_AnOperatorIsNotExpectedWhereItsPodCannotRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Spec, *Node)
		holds  bool
	}{
		"a taint of the user":          {func(_ *Spec, n *Node) { n.Taints = []string{"example.com/gpu=yes:NoSchedule"} }, true},
		"a dead node":                  {func(_ *Spec, n *Node) { n.Taints = []string{"node.kubernetes.io/unreachable:NoExecute"} }, true},
		"a node that is left out":      {func(s *Spec, n *Node) { s.Skip = cluster.SkippedNodes{{Name: n.Name}} }, true},
		"an undeclared dead node":      {func(_ *Spec, n *Node) { n.Name, n.Ready = "talos-xyz", "Unknown" }, true},
		"a declared dead node":         {func(_ *Spec, n *Node) { n.Ready = "Unknown" }, false},
		"a label that it looks for":    {func(_ *Spec, n *Node) { n.Labels = nil }, true},
		"another value of that label":  {func(_ *Spec, n *Node) { n.Labels = map[string]string{"example.com/net": "slow"} }, true},
		"another value of a tolerated": {func(_ *Spec, n *Node) { n.Taints = []string{"example.com/disk=ssd:NoSchedule"} }, true},
		"another effect":               {func(_ *Spec, n *Node) { n.Taints = []string{"example.com/disk=hdd:NoExecute"} }, true},
		"a taint that it tolerates":    {func(_ *Spec, n *Node) { n.Taints = []string{"example.com/disk=hdd:NoSchedule"} }, false},
		"a taint of any value":         {func(_ *Spec, n *Node) { n.Taints = []string{"example.com/any=x:NoSchedule"} }, false},
		"a preference":                 {func(_ *Spec, n *Node) { n.Taints = []string{"example.com/slow:PreferNoSchedule"} }, false},
	} {
		spec := only(2)
		seen := healthy(spec)
		seen.Operators.Items[1] = pendingOperator
		operator := &seen.Operator.Items[0]
		operator.NodeSelector = map[string]string{"example.com/net": "fast"}
		operator.Tolerations = []corev1.Toleration{
			{Key: "example.com/any", Operator: corev1.TolerationOpExists},
			{Key: "example.com/disk", Value: "hdd", Effect: corev1.TaintEffectNoSchedule},
		}
		for i := range seen.Nodes.Items {
			seen.Nodes.Items[i].Labels = map[string]string{"example.com/net": "fast"}
		}
		test.change(spec, &seen.Nodes.Items[1])
		for _, result := range ciliumOperator.Judge(spec, seen) {
			assert.Equal(t, test.holds, result.Verdict == health.Passed, "%s: %s", name, result.Reason)
		}
	}
}

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
