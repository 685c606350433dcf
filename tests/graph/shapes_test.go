package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/stacks/config/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const workersGate = "workers-probe"

// upFile runs the program with a stack file that is not one of the project's.
func upFile(t *testing.T, file string) *mocks.Recorder {
	t.Helper()
	rec := newRecorderOf(t, file, "infra")
	require.NoError(t, rec.Run(stacks.Deploy))
	return rec
}

func TestShapes_EveryValidStackFileRegistersAWholeChain(t *testing.T) {
	require.Greater(t, len(fixtures.Valid()), 10)
	for _, one := range fixtures.Valid() {
		t.Run(one.Name, func(t *testing.T) {
			file := fixtures.Write(t, one.Name, "infra")
			stack, err := config.LoadFile(file)
			require.NoError(t, err)
			rec := upFile(t, file)
			assert.Len(t, rec.OfType(typeVM), len(stack.Machines()))
			assert.Len(t, rec.OfType(typeApply), len(stack.Machines()))
			assert.True(t, rec.After(rec.Resource(t, handover), rec.Resource(t, gate)))
			assert.True(t, rec.After(rec.Resource(t, handover), rec.Resource(t, coreDNS)))
		})
	}
}

func TestShapes_InlineCiliumIsRenderedBeforeTheClusterByAProviderWithoutOne(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "inline", "infra"))
	charts := rec.Resource(t, "charts")
	assert.Equal(t, `{"apiVersion": "v1", "kind": "Config"}`, charts.Input("kubeconfig"), "neither the user's kubeconfig nor the cluster's")
	rendered := 0
	for _, call := range rec.Calls() {
		if call.Token == mocks.FunctionTemplate {
			rendered++
			assert.Contains(t, call.Provider, charts.URN)
		}
	}
	assert.Equal(t, 1, rendered)
	assert.True(t, rec.After(charts, rec.Resource(t, "cilium-mode")), "a refused mode changes nothing")
	for _, reg := range rec.Find(inCluster) {
		assert.NotEqual(t, charts.URN, reg.ProviderURN(), reg.Name)
	}
	for _, name := range stackNames(t) {
		assert.NotContains(t, up(t, name).Names(), "pulumi:providers:kubernetes charts", "%s needs none", name)
	}
}

func TestShapes_WorkersThatJoinLaterAreCreatedAfterTheGateAndCoveredByASecondOne(t *testing.T) {
	file := fixtures.Write(t, "after-gate", "infra")
	stack, err := config.LoadFile(file)
	require.NoError(t, err)
	rec := upFile(t, file)
	first, second := rec.Resource(t, gate), rec.Resource(t, workersGate)
	for _, vm := range rec.OfType(typeVM) {
		isWorker := false
		for _, worker := range stack.WorkerMachines() {
			isWorker = isWorker || vm.Name == "talos-"+worker.Name+"-vm"
		}
		assert.Equal(t, isWorker, rec.After(vm, first), vm.Name)
		assert.True(t, rec.After(second, vm), vm.Name)
	}
	for _, later := range []string{coreDNS, gitSecret, handover} {
		assert.True(t, rec.After(rec.Resource(t, later), second), later)
	}
	assert.Contains(t, first.Dependencies, rec.Resource(t, ciliumRelease).URN)
}

func TestShapes_WorkersThatJoinLaterAreTheSameResourcesAsThoseThatJoinInParallel(t *testing.T) {
	file := fixtures.Write(t, "after-gate", "infra")
	follow := upFile(t, file)
	together := newRecorderOf(t, file, "infra")
	delete(together.Config, "slipway:workers")
	require.NoError(t, together.Run(stacks.Deploy))
	assert.Subset(t, follow.Names(), together.Names(), "a change of workers.join replaces no machine")
}
