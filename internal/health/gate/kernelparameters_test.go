package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	onTalos(seen, func(n *TalosNode) { n.Parameters = &KernelParameters{} }, names(spec.Nodes)...)
})

var _ = scenario("kernel-parameter-refused", true, func() (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	onTalos(seen, func(n *TalosNode) {
		n.Parameters = &KernelParameters{Unset: []string{"net.core.somaxcon", "vm.nr_hugepages"}}
	},
		"infra-worker-1", "infra-worker-2")
	return spec, seen
})

var _ = scenario("kernel-parameters-unreadable", true, func() (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	onTalos(seen, func(n *TalosNode) {
		n.Parameters = &KernelParameters{Err: &health.Broken{Reason: "PermissionDenied: not authorized"}}
	}, "infra-worker-1")
	return spec, seen
})

func TestGate_AKernelParameterThatTheKernelDoesNotTakeIsNamedAndClosesNoGate(t *testing.T) {
	results := Evaluate(scenarios["kernel-parameter-refused"].make())
	assert.True(t, health.Hold(results))
	for _, result := range results {
		if result.Check == kernelParameters.Name && result.Subject == "infra-worker-1" {
			assert.Contains(t, result.Reason, "net.core.somaxcon, vm.nr_hugepages")
			return
		}
	}
	t.Error("there is no result for infra-worker-1")
}
