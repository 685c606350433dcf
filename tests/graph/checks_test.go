package graph

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	health "github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/own"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const checksGate = "checks-probe"

func TestChecks_AreInAllGatesAndTurns(t *testing.T) {
	rec := newRecorder(t, "infra")
	rec.Config["slipway:checks"] = `[{"name":"all is well","objects":{"apiVersion":"v1","kind":"Node"},"expression":"has(object.status)"}]`
	require.NoError(t, rec.Run(stacks.Deploy))
	read := func(name string, spec probe.Spec) {
		require.NoError(t, probe.Read(strings.NewReader(rec.Resource(t, name).Input("stdin").(string)), spec), name)
	}
	first, healthy, last, turns := new(health.Spec), new(health.Spec), new(own.Spec), new(upgrade.Spec)
	read(machinesGate, first)
	assert.Len(t, first.Checks, 1, "the gate before Cilium lists them, and waits for none")
	read(gate, healthy)
	require.Len(t, healthy.Checks, 1)
	read(checksGate, last)
	assert.Equal(t, healthy.Checks, last.Checks)
	read(upgradeName, turns)
	require.Len(t, turns.Checks, 2, "infra provides storage: Ceph is asked, too")
	assert.Equal(t, healthy.Checks, turns.Checks[:1])
	assert.Equal(t, "CephCluster", turns.Checks[1].Objects.Kind)

	end := rec.Resource(t, checksGate)
	assert.Contains(t, end.Dependencies, rec.Resource(t, handover).URN, "Flux may bring what they judge")
	assert.Equal(t, probe.Program+" checks", end.Input("create"))
	assert.Equal(t, rec.Resource(t, kubernetes).URN, end.RPC.GetDeletedWith())
	assert.Contains(t, end.AdditionalSecretOutputs, "stdin")
}

func TestChecks_WithoutAnyThereIsNoGate(t *testing.T) {
	rec := newRecorder(t, "infra")
	require.NoError(t, rec.Run(stacks.Deploy))
	assert.Empty(t, rec.Find(func(reg mocks.Registration) bool { return reg.Name == checksGate }))
}
