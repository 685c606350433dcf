package talos

import (
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/retire"
	"github.com/slipway-platform/slipway/internal/step"
	"github.com/slipway-platform/slipway/internal/turn"
)

func TestTalosCluster_RemovesNodesBeforeItChangesMachinesAndConfigurations(t *testing.T) {
	r := up(t)
	run := r.Resource(t, "infra-retire")
	assert.True(t, r.After(run, r.Only(t, typeSecrets)))
	assert.True(t, r.After(run, r.Resource(t, "infra-hosts")), "a refused run removes nothing")
	assert.True(t, r.After(r.Resource(t, "infra-upgrade"), run))
	for _, later := range append(r.OfType(typeVM), r.OfType(typeApply)...) {
		assert.True(t, r.After(later, run), later.Name)
	}
	for _, image := range r.OfType(typeISO) {
		assert.False(t, r.After(image, run), "%s is downloaded meanwhile", image.Name)
	}
}

// A new resource would not know which nodes were declared before.
func TestTalosCluster_TheRemovalOfNodesIsUpdatedAndNeverReplaced(t *testing.T) {
	run := up(t).Resource(t, "infra-retire")
	assert.Equal(t, step.Program+" retire", run.Input("update"))
	assert.NotContains(t, run.Input("create"), step.Program, "a new cluster has no node to remove")
	assert.Nil(t, run.Input("delete"), "a destroy drains nobody")
	assert.Nil(t, run.Input("triggers"), "their change would replace it")
	assert.Equal(t, true, run.Input("addPreviousOutputInEnv"))
	assert.Equal(t, []string{"infra-retire"}, run.RPC.GetHooks().GetBeforeUpdate())
}

func TestTalosCluster_ShowsTheDeclaredNodesAndHidesCredentials(t *testing.T) {
	run := up(t).Resource(t, "infra-retire")
	assert.True(t, run.SecretInput("stdin"))
	assert.Empty(t, run.PlainPaths(keyMaterial))
	record, err := retire.ReadRecord(run.Input("environment.SLIPWAY_RECORD").(string))
	require.NoError(t, err)
	assert.Len(t, record.Nodes, len(machines(t)))
	var spec retire.Spec
	require.NoError(t, json.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
	assert.Equal(t, record, retire.NewRecord(spec.Nodes))
}

func TestRetirement_ComparesWithTheRecordOfTheLastRun(t *testing.T) {
	declared := turnNodes(machines(t))
	outputs := func(nodes []turn.Node) resource.PropertyMap {
		stdout := resource.MakeSecret(resource.NewProperty("nodes of infra\n" + retire.NewRecord(nodes).String()))
		return resource.PropertyMap{"stdout": stdout}
	}
	plan, err := retirement(outputs(declared), declared[:4])
	require.NoError(t, err)
	assert.Equal(t, declared[4:], plan.Leave)
	_, err = retirement(outputs(declared), append(declared[:1:1], declared[3:]...))
	require.ErrorContains(t, err, "infra-cp-2, infra-cp-3 are control planes, and one up removes one of them at most")
	plan, err = retirement(resource.PropertyMap{}, declared)
	require.NoError(t, err)
	assert.Empty(t, plan.Leave)
	_, err = retirement(resource.PropertyMap{"stdout": resource.NewProperty("x")}, declared)
	require.ErrorContains(t, err, "the state of the removal of nodes")
}
