package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/own"
)

func TestGate_WaitsForDeclaredChecksUnlessCiliumComesAfterIt(t *testing.T) {
	spec := declared()
	spec.Checks = []cluster.Check{{
		Name: "all is well", Objects: cluster.CheckedObjects{APIVersion: "v1", Kind: "Node"}, Expression: "false", Message: "see the runbook",
	}}
	seen := healthy(spec)
	for _, objects := range []own.Seen{nil, {"all is well": {Synced: true, Items: []cluster.CheckedObject{{Name: "infra-cp-1"}}}}} {
		seen.Own = objects
		spec.Cilium = &Cilium{Namespace: "kube-system"}
		assert.False(t, health.Hold(Evaluate(spec, seen)))
		spec.Cilium = nil
		results := Evaluate(spec, seen)
		assert.True(t, health.Hold(results))
		last := results[len(results)-1]
		require.Equal(t, "all is well", last.Check)
		assert.Equal(t, health.Skipped, last.Verdict)
		assert.Contains(t, last.Reason, "is not waited for, because Cilium comes after this gate: ")
	}
	assert.Contains(t, Evaluate(spec, seen)[len(Evaluate(spec, seen))-1].Reason, "see the runbook")
}
