package graph

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// A configuration alone would restart another Kubernetes on all nodes at once.
func TestUpgrade_ComesAfterTheMachinesAndBeforeAllConfigurationsAndGates(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		step := rec.Resource(t, upgradeName)
		require.True(t, step.Custom)
		for _, machine := range rec.OfType(typeVM) {
			assert.False(t, rec.After(machine, step), machine.Name)
		}
		assert.True(t, rec.After(step, rec.Only(t, typeSecrets)))
		assert.True(t, rec.After(step, rec.Resource(t, ciliumMode)), "a refused change upgrades nothing")
		applies := rec.OfType(typeApply)
		assert.Len(t, applies, len(stack.Machines()))
		for _, later := range append(applies, rec.Resource(t, bootstrapName), rec.Resource(t, machinesGate), rec.Resource(t, gate)) {
			assert.True(t, rec.After(later, step), later.Name)
		}
	})
}

func TestUpgrade_OfWorkersThatJoinLaterComesBeforeTheirConfigurationsToo(t *testing.T) {
	rec := newRecorderOf(t, fixtures.Write(t, "after-gate", "infra"), "infra")
	require.NoError(t, rec.Run(stacks.Deploy))
	step := rec.Resource(t, upgradeName)
	var spec upgrade.Spec
	require.NoError(t, json.Unmarshal([]byte(step.Input("stdin").(string)), &spec))
	assert.Len(t, spec.Nodes, len(rec.OfType(typeVM)), "an existing worker is upgraded, whenever it joined")
	for _, apply := range rec.OfType(typeApply) {
		assert.True(t, rec.After(apply, step), apply.Name)
	}
	for _, machine := range rec.OfType(typeVM) {
		first := machine.Protect // a control plane; workers wait for a gate, which waits for the step
		assert.Equal(t, first, rec.After(step, machine), machine.Name)
	}
}

func TestUpgrade_ShowsVersionsAndHidesCredentials(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		step := rec.Resource(t, upgradeName)
		assert.True(t, step.SecretInput("stdin"))
		assert.False(t, step.Inputs["triggers"].ContainsSecrets())
		text, err := json.Marshal(step.Input("triggers"))
		require.NoError(t, err)
		assert.Contains(t, string(text), stack.Talos.Version)
		assert.Contains(t, string(text), stack.Kubernetes.Version)
		assert.NotContains(t, string(text), keyMaterial)
		var spec upgrade.Spec
		require.NoError(t, json.Unmarshal([]byte(step.Input("stdin").(string)), &spec))
		require.NoError(t, spec.Validate())
	})
}
