package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// A member of etcd whose machine is deleted or dead must not count while others reboot.
func TestRetire_ComesBeforeEveryChangeOfTheCluster(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		step := rec.Resource(t, retireName)
		require.True(t, step.Custom)
		assert.True(t, rec.After(step, rec.Resource(t, ciliumMode)), "a refused change removes nothing")
		later := append(rec.OfType(typeVM), rec.OfType(typeApply)...)
		require.Len(t, later, 2*len(stack.Machines()))
		for _, later := range append(later, rec.Resource(t, upgradeName), rec.Resource(t, machinesGate), rec.Resource(t, gate)) {
			assert.True(t, rec.After(later, step), later.Name)
		}
		assert.Contains(t, step.Provider, "command")
		record, err := retire.ReadRecord(step.Input("environment.SLIPWAY_RECORD").(string))
		require.NoError(t, err)
		assert.Len(t, record.Nodes, len(stack.Machines()))
		assert.Equal(t, stack.Storage.ClusterID(), record.Identity.Volumes)
	})
}
