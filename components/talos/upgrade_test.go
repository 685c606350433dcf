package talos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

func TestTalosCluster_UpgradesAfterTheMachinesAndBeforeEveryConfiguration(t *testing.T) {
	r := up(t)
	step := r.Resource(t, "infra-upgrade")
	for _, vm := range r.OfType(typeVM) {
		assert.Contains(t, step.Dependencies, vm.URN)
		assert.False(t, r.After(vm, step), vm.Name)
	}
	assert.True(t, r.After(step, r.Only(t, typeSecrets)))
	for _, apply := range r.OfType(typeApply) {
		assert.Contains(t, apply.Dependencies, step.URN)
	}
	for _, image := range r.OfType(typeISO) {
		assert.False(t, r.After(image, step), "%s is downloaded meanwhile", image.Name)
	}
}

func TestTalosCluster_DeclaresToTheUpgradeWhatAllNodesRun(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) {
		c.Lifecycle.MaxUnavailable, c.Lifecycle.AllowRemovedAPIs = "2", true
		c.Lifecycle.DrainTimeout.Duration, c.Lifecycle.ReturnTimeout.Duration = 7*time.Minute, 45*time.Minute
		c.Workers.Join = cluster.JoinAfterGate
	})
	run := r.Resource(t, "infra-upgrade")
	assert.Equal(t, probe.Program+" upgrade", run.Input("create"))
	var spec upgrade.Spec
	require.NoError(t, json.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
	declared := arguments(t).Cluster
	assert.Equal(t, declared.Talos.Version, spec.Talos)
	assert.Equal(t, declared.Kubernetes.Version, spec.Kubernetes)
	assert.Equal(t, versions.Cilium{Version: declared.Cilium.Version}, spec.Cilium)
	assert.Equal(t, schematicID, spec.Schematic)
	assert.Len(t, spec.Installers, len(allMachines(t)))
	assert.Equal(t, "factory.talos.dev/nocloud-installer/"+schematicID+":"+declared.Talos.Version, spec.Installers["infra-cp-1"])
	assert.Len(t, spec.Nodes, len(allMachines(t)), "workers that join later run already when a cluster is upgraded")
	assert.Equal(t, cluster.Share("2"), spec.MaxUnavailable)
	assert.True(t, spec.AllowRemovedAPIs)
	assert.Equal(t, 7*time.Minute, spec.DrainTimeout.Duration)
	assert.Equal(t, 45*time.Minute, spec.ReturnTimeout.Duration)
	assert.Equal(t, "snapshots", spec.Snapshots.Folder)
	assert.Equal(t, 5, spec.Snapshots.Keep)
}

func TestTalosCluster_ShowsWhatAnUpgradeChangesAndHidesCredentials(t *testing.T) {
	r := up(t)
	run := r.Resource(t, "infra-upgrade")
	assert.True(t, run.SecretInput("stdin"))
	assert.Empty(t, run.PlainPaths(keyMaterial))
	text, err := json.Marshal(run.Input("triggers"))
	require.NoError(t, err)
	declared := arguments(t).Cluster
	assert.JSONEq(t, fmt.Sprintf(`[{"talos":%q},{"extensions":%q},{"kubernetes":%q}]`,
		declared.Talos.Version, schematicID, declared.Kubernetes.Version), string(text))
	assert.False(t, run.Inputs["triggers"].ContainsSecrets(), "a preview shows them")
	assert.False(t, strings.Contains(string(text), keyMaterial))
}

// Pulumi takes the former run out of the state before it begins a run for other versions, which may fail. So a run for the former versions
// is a new one, too. Otherwise they would differ in nothing from the state.
func TestTalosCluster_AnUpgradeRunsAgainForTheFormerVersionsAfterItHasFailed(t *testing.T) {
	run := up(t).Resource(t, "infra-upgrade")
	assert.True(t, run.RPC.GetDeleteBeforeReplace())
	assert.Contains(t, run.ReplaceOnChanges, "triggers[*]")
}
