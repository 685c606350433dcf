package talos

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// What is tried is what a cluster that a wrong network has stopped needs: the provider must apply it before the node takes it back.
func TestTurns_ANodeOfAClusterWithoutEtcdIsMendedByAChangeThatRebootsNothing(t *testing.T) {
	for effect, want := range map[live.Effect]string{
		live.MayIsolate:                "try infra-cp-1",
		live.MayIsolateAndRestartsPods: "try infra-cp-1",
		live.RestartsPods:              "step aside infra-cp-1",
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{effects: effect, unbootstraps: true}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			start := time.Now()
			require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")), want)
			assert.Less(t, time.Since(start), turn.SilentTimeout+tryFor/2, want)
			assert.Equal(t, []string{want}, on.log)
			require.NoError(t, turns.end(t.Context(), "urn:1"))
		})
	}
}
