package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// tainted declares taints for a node, which has others.
func tainted(node int, has ...string) func() (*Spec, *Cluster) {
	return func() (*Spec, *Cluster) {
		spec := declared()
		seen := healthy(spec)
		spec.Nodes[node].Taints = map[string]string{
			"dedicated": "storage:NoSchedule", "example.com/gpu": "NoExecute", "example.com/old": ":PreferNoSchedule",
		}
		seen.Nodes.Items[node].Taints = has
		return spec, seen
	}
}

var _ = scenario("taints-missing-on-a-worker", false, tainted(3, "dedicated=other:NoSchedule", "example.com/old:PreferNoSchedule"))

var _ = scenario("taints-missing-on-a-control-plane", false, tainted(0, "dedicated=storage:NoSchedule", "example.com/old:PreferNoSchedule"))

var _ = scenario("taint-that-is-not-declared", true, tainted(3, "dedicated=storage:NoSchedule", "example.com/gpu:NoExecute",
	"example.com/old:PreferNoSchedule", "example.com/mine=1:NoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule"))

func TestGate_WaitsForTaintsOnlyWhereTalosMaySetThem(t *testing.T) {
	assert.True(t, hopeless(Evaluate(tainted(3)())))
	assert.False(t, hopeless(Evaluate(tainted(0)())))
}
