package talos

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/mocks"
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
	assert.Equal(t, probe.Program+" retire", run.Input("update"))
	assert.NotContains(t, run.Input("create"), probe.Program, "a new cluster has no node to remove")
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
	assert.Len(t, record.Nodes, len(allMachines(t)))
	for _, machine := range allMachines(t) {
		assert.NotEmpty(t, machine.MAC)
		assert.Equal(t, machine.MAC, record.Nodes[machine.Name].MAC)
	}
	var spec retire.Spec
	require.NoError(t, json.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
	assert.Equal(t, record, spec.Record())
}

func TestRetireSpec_HasTheDeclaredLimits(t *testing.T) {
	declared := arguments(t).Cluster
	declared.Lifecycle.DrainTimeout.Duration, declared.Lifecycle.ReturnTimeout.Duration = 7*time.Minute, 45*time.Minute
	spec := retireSpec(declared)
	assert.Equal(t, 7*time.Minute, spec.DrainTimeout.Duration)
	assert.Equal(t, 45*time.Minute, spec.ReturnTimeout.Duration)
}

func TestRetireSpec_HasTheVersionThatReplacedNodesJoinWith(t *testing.T) {
	declared := arguments(t).Cluster
	assert.Empty(t, retireSpec(declared).Kubernetes, "no node was ever replaced, and the step does not run again for an upgrade")
	replaced := arguments(t, func(c *cluster.Cluster) { c.NodePools[1].Nodes[0].Generation = 2 }).Cluster
	assert.Equal(t, declared.Kubernetes.Version, retireSpec(replaced).Kubernetes)
}

func TestRetirement_ComparesWithTheRecordOfTheLastRun(t *testing.T) {
	all := retireSpec(arguments(t).Cluster).Nodes
	outputs := func(nodes []turn.Node) *pulumi.ResourceHookArgs {
		stdout := resource.MakeSecret(resource.NewProperty("nodes of infra\n" + retire.NewRecord(nodes).String()))
		return &pulumi.ResourceHookArgs{OldOutputs: resource.PropertyMap{"stdout": stdout}}
	}
	plan, err := retirement(outputs(all), declaring(all[:4]), false)
	require.NoError(t, err)
	assert.Len(t, plan.Leave, len(all)-4)
	fewer := declaring(append(all[:1:1], all[3:]...))
	_, err = retirement(outputs(all), fewer, false)
	require.ErrorContains(t, err, "infra-cp-2, infra-cp-3 are control planes, and one run removes or replaces one of them at most")
	fewer.Recovers = true
	_, err = retirement(outputs(all), fewer, false)
	require.NoError(t, err, "the probe decides, which sees whether the cluster is lost")
	plan, err = retirement(&pulumi.ResourceHookArgs{}, declaring(all), false)
	require.NoError(t, err)
	assert.Empty(t, plan.Leave)
	other := &pulumi.ResourceHookArgs{OldOutputs: resource.PropertyMap{"stdout": resource.NewProperty("x")}}
	_, err = retirement(other, declaring(all), false)
	require.ErrorContains(t, err, "the state of the removal of nodes")
}

// In the copy of a state that `make preview STATE=` runs on, every secret output is unknown.
func TestRetirement_OfAPreviewComparesWithTheDeclarationOfTheLastRunIfItsOutputIsUnknown(t *testing.T) {
	before := retireSpec(arguments(t).Cluster).Nodes
	change := &pulumi.ResourceHookArgs{
		OldInputs: resource.PropertyMap{"environment": resource.NewProperty(resource.PropertyMap{
			step.RecordVariable: resource.NewProperty(retire.NewRecord(before).String()),
		})},
		OldOutputs: resource.PropertyMap{"stdout": resource.MakeComputed(resource.NewProperty(""))},
	}
	after := slices.Clone(before)
	after[1].Generation = 2
	plan, err := retirement(change, declaring(after), true)
	require.NoError(t, err)
	assert.Equal(t, []string{"infra-cp-2"}, plan.Replaced)
	after[2].Generation = 2
	_, err = retirement(change, declaring(after), true)
	require.ErrorContains(t, err, "infra-cp-2, infra-cp-3 are control planes, and one run removes or replaces one of them at most")
	plan, err = retirement(change, declaring(after), false)
	require.NoError(t, err)
	assert.Empty(t, plan.Replaced, "an up always has the output")
}

// A run that removes a node and fails later does not delete its machine, which is off. If the node is declared again, nothing of the
// machine changes.
func TestTalosCluster_ANodeThatIsNewWithAFormerMachineOpensNoGateUnseen(t *testing.T) {
	all := retireSpec(arguments(t).Cluster).Nodes
	for name, test := range map[string]struct {
		former []turn.Node
		made   bool // by this run
		want   string
	}{
		"it was removed":             {former: all[:4], want: " again"},
		"its machine is made now":    {former: all[:4], made: true},
		"the last run knew the node": {former: all},
	} {
		api, _ := emptyProxmox(t)
		r := answers(&mocks.Recorder{RunHooks: true, DryRun: !test.made, Former: map[string]resource.PropertyMap{
			"infra-retire": {"stdout": resource.NewProperty(retire.NewRecord(test.former).String())},
		}})
		told, args := map[string]string{}, arguments(t, api)
		args.Cluster.Talos.Factory, _ = factory(t)
		require.NoError(t, r.Run(program(args, func(_ *pulumi.Context, c *TalosCluster) error {
			c.VMs().ToStringMapOutput().ApplyT(func(vms map[string]string) any {
				told = vms
				return nil
			})
			return nil
		})), name)
		require.Len(t, told, len(all), name)
		for _, node := range all {
			assert.Equal(t, map[string]string{"infra-worker-2": test.want}[node.Name], told[node.Name], "%s: %s", name, node.Name)
		}
	}
}

func TestTalosCluster_AnotherGenerationReplacesAMachine(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.NodePools[0].Nodes[1].Generation = 3 })
	for _, node := range allMachines(t) {
		want := 1
		if node.Name == "infra-cp-2" {
			want = 3
		}
		vm := r.Resource(t, "infra-"+node.Name+"-vm")
		assert.EqualValues(t, want, vm.RPC.GetReplacementTrigger().GetNumberValue(), "%s: in the state from the beginning", node.Name)
		assert.Equal(t, node.Role == cluster.ControlPlane, vm.RPC.GetProtect(), "%s: it is not replaced now", node.Name)
	}
	record, err := retire.ReadRecord(r.Resource(t, "infra-retire").Input("environment.SLIPWAY_RECORD").(string))
	require.NoError(t, err)
	assert.Equal(t, 3, record.Nodes["infra-cp-2"].Generation)
	assert.Equal(t, 1, record.Nodes["infra-worker-1"].Generation)
}

func TestTalosCluster_AControlPlaneIsNotProtectedInTheRunThatReplacesIt(t *testing.T) {
	removal := new(removal)
	removal.follows(retire.Plan{Replaced: []string{"infra-cp-2"}})
	for _, node := range allMachines(t) {
		assert.Equal(t, node.Role == cluster.ControlPlane && node.Name != "infra-cp-2", removal.protects(nil, node), node.Name)
	}
}

func TestWarnings_NameTheNodesThatMayTakeOSDsAlong(t *testing.T) {
	before := retireSpec(arguments(t).Cluster).Nodes
	leaves := func(c *cluster.Cluster) []string {
		plan, err := retire.NewPlan(retire.NewRecord(before), declaring(before[:4]), false)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Leave)
		return warnings(plan, c)
	}
	provider := arguments(t).Cluster
	assert.Equal(t, []string{"infra-worker-2 may have OSDs of Ceph, on disks with use: osd, which go with the machine; " +
		"to lose no copy, let Ceph empty them before: " +
		"docs/nodes.md, A node with an OSD of Ceph"}, leaves(provider))
	workers(provider).DataDisks = nil
	assert.Empty(t, leaves(provider))
}

// declaring returns a spec that declares nodes.
func declaring(nodes []turn.Node) *retire.Spec {
	return &retire.Spec{Declared: turn.Declared{Target: turn.Target{Nodes: nodes}}}
}
