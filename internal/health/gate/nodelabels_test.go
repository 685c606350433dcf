package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
)

// labelled declares labels for a worker, of which the node has some.
func labelled(has map[string]string) func() (*Spec, *Cluster) {
	return func() (*Spec, *Cluster) {
		spec := declared()
		seen := healthy(spec)
		spec.Nodes[3].Labels = map[string]string{"example.com/rack": "7", "topology.kubernetes.io/zone": "pve1"}
		seen.Nodes.Items[3].Labels = has
		return spec, seen
	}
}

var _ = scenario("labels-missing", false, labelled(nil))

var _ = scenario("label-of-another-value", false,
	labelled(map[string]string{"example.com/rack": "", "topology.kubernetes.io/zone": "pve1"}))

func TestGate_WaitsForLabels(t *testing.T) {
	spec, seen := labelled(nil)()
	assert.False(t, hopeless(Evaluate(spec, seen)), "Talos sets them after the node has registered")
	seen.Nodes.Items[3].Labels = map[string]string{
		"example.com/rack": "7", "topology.kubernetes.io/zone": "pve1", "example.com/other": "not judged",
	}
	assert.True(t, health.Hold(Evaluate(spec, seen)))
}
