package talos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// replacing records the preview of a run that replaces a control plane and a worker.
func replacing(t *testing.T, changes ...func(*cluster.Cluster)) *mocks.Recorder {
	t.Helper()
	before := retire.NewRecord(retireSpec(arguments(t).Cluster).Nodes).String()
	r := answers(&mocks.Recorder{RunHooks: true, DryRun: true, Former: map[string]resource.PropertyMap{
		"infra-retire": {"stdout": resource.NewProperty(before)},
	}})
	args := arguments(t, append(changes, func(c *cluster.Cluster) {
		c.NodePools[0].Nodes[2].Generation, workers(c).Nodes[1].Generation = 2, 2
	})...)
	require.NoError(t, r.Run(program(args, func(ctx *pulumi.Context, c *TalosCluster) error {
		assert.Len(t, c.VMs(), len(args.Cluster.FirstMachines()), "the first gate would run again in the next run")
		_, err := c.Join(ctx, c.Leaves())
		assert.Len(t, c.VMs(), len(allMachines(t)))
		return err
	})))
	return r
}

func TestRejoin_ReplacedNodesAreBackBeforeAnyOtherNodeIsChanged(t *testing.T) {
	for name, r := range map[string]*mocks.Recorder{
		"workers in parallel": replacing(t),
		"workers later":       replacing(t, func(c *cluster.Cluster) { c.Workers.Join = cluster.JoinAfterGate }),
	} {
		upgrade := r.Resource(t, "infra-upgrade")
		for _, node := range allMachines(t) {
			vm, apply := r.Resource(t, "infra-"+node.Name+"-vm"), r.Resource(t, "infra-"+node.Name+"-apply")
			replaced := node.Name == "infra-cp-3" || node.Name == "infra-worker-2"
			assert.Equal(t, replaced, r.After(upgrade, apply), "%s: %s", name, node.Name)
			assert.NotEqual(t, replaced, r.After(apply, upgrade), "%s: %s", name, node.Name)
			assert.Equal(t, replaced, slices.Contains(apply.RPC.GetHooks().GetAfterCreate(), apply.Name+"-joined"), "%s: %s", name, node.Name)
			for _, again := range []string{"infra-infra-cp-3-apply", "infra-infra-worker-2-apply"} {
				assert.NotEqual(t, replaced, r.After(vm, r.Resource(t, again)), "%s: %s after %s", name, vm.Name, again)
			}
		}
	}
}

// Otherwise all others would wait for a node that waits for its configuration.
func TestRejoin_AMachineThatAKilledRunHasReplacedJoinsFirst(t *testing.T) {
	for name, one := range map[string]struct {
		on     *calm
		dryRun bool
		first  string
	}{
		"a control plane":                       {on: &calm{fresh: "infra-cp-3", version: "v1.99.0"}, first: "infra-cp-3"},
		"a worker":                              {on: &calm{fresh: "infra-worker-2", version: "v1.99.0"}, first: "infra-worker-2"},
		"it has joined":                         {on: &calm{version: "v1.99.0"}},
		"it was never replaced":                 {on: &calm{fresh: "infra-worker-1", version: "v1.99.0"}},
		"its kubelet would be too new":          {on: &calm{fresh: "infra-worker-2", version: "v1.20.0"}},
		"no API server answers":                 {on: &calm{fresh: "infra-worker-2"}},
		"a preview, which asks no machine":      {on: &calm{fresh: "infra-worker-2", version: "v1.99.0"}, dryRun: true},
		"no machine answers whether it has any": {on: &calm{fresh: "infra-worker-2", version: "v1.99.0", silent: errors.New("no route")}},
	} {
		args := arguments(t, func(c *cluster.Cluster) {
			c.NodePools[0].Nodes[2].Generation, workers(c).Nodes[1].Generation = 2, 2
		})
		args.dial = func(context.Context) (access, error) { return one.on, nil }
		r := answers(&mocks.Recorder{DryRun: one.dryRun})
		require.NoError(t, r.Run(program(args, nil)), name)
		for _, node := range allMachines(t) {
			apply := r.Resource(t, "infra-"+node.Name+"-apply")
			assert.Equal(t, node.Name == one.first, r.After(r.Resource(t, "infra-upgrade"), apply), "%s: %s", name, node.Name)
			assert.Equal(t, node.Name == one.first, slices.Contains(apply.RPC.GetHooks().GetAfterCreate(), apply.Name+"-joined"),
				"%s: %s", name, node.Name)
		}
	}
}

func TestRejoin_RegistersTheSameResources(t *testing.T) {
	usual, r := up(t), replacing(t)
	assert.Equal(t, usual.Names(), r.Names())
	for _, apply := range r.OfType(typeApply) {
		assert.True(t, r.After(r.Resource(t, "infra-turns"), apply), apply.Name)
	}
	usual, r = joined(t, &mocks.Recorder{}, nil), replacing(t, joinAfterGate)
	assert.Equal(t, slices.DeleteFunc(usual.Names(), func(name string) bool { return strings.HasPrefix(name, typeGate) }), r.Names())
}

// The spec of the bootstrap names all machines: in another order, it would run again.
func TestInOrder_IsTheOrderInWhichNodesAreDeclared(t *testing.T) {
	var nodes []node
	for _, machine := range allMachines(t) {
		nodes = slices.Insert(nodes, 0, node{Machine: machines.Machine{Node: machine}})
	}
	var names []string
	for _, node := range inOrder(nodes, allMachines(t)) {
		names = append(names, node.Node.Name)
	}
	assert.Equal(t, []string{"infra-cp-1", "infra-cp-2", "infra-cp-3", "infra-worker-1", "infra-worker-2"}, names)
}

func TestRejoin_NothingJoinsALostClusterBeforeItIsRestored(t *testing.T) {
	r := replacing(t, func(c *cluster.Cluster) { c.Lifecycle.Snapshots.RecoverFrom = cluster.RecoverNothing })
	upgrade := r.Resource(t, "infra-upgrade")
	for _, apply := range r.OfType(typeApply) {
		assert.True(t, r.After(apply, upgrade), apply.Name)
		assert.Empty(t, apply.RPC.GetHooks().GetAfterCreate(), apply.Name)
	}
}

// Otherwise the upgrade would wait for a node that waits for its configuration, in this run and in all later ones.
func TestRejoin_AReplacedMachineJoinsFirstIfTheClusterRunsAlthoughItsRecoveryIsDeclared(t *testing.T) {
	for name, one := range map[string]struct {
		on     *calm
		dryRun bool
		first  []string
	}{
		"replaced by this run":        {on: &calm{version: "v1.99.0"}, first: []string{"infra-cp-3"}},
		"replaced by this and before": {on: &calm{version: "v1.99.0", fresh: "infra-worker-2"}, first: []string{"infra-cp-3", "infra-worker-2"}},
		"no API server answers":       {on: &calm{fresh: "infra-worker-2"}},
		"a preview":                   {on: &calm{version: "v1.99.0"}, dryRun: true},
	} {
		declared := arguments(t, func(c *cluster.Cluster) {
			c.NodePools[0].Nodes[2].Generation, workers(c).Nodes[1].Generation = 2, 2
			c.Lifecycle.Snapshots.RecoverFrom = cluster.RecoverNothing
		}).Cluster
		turns := turnsOf(t, one.on)
		turns.Cluster = declared
		r := &mocks.Recorder{DryRun: one.dryRun}
		require.NoError(t, r.Run(func(ctx *pulumi.Context) error {
			removal := &removal{run: new(pulumi.ResourceState), replaced: []string{"infra-cp-3"}}
			err := ctx.RegisterComponentResource("test:index:Run", "run", removal.run.(*pulumi.ResourceState))
			var first []string
			for _, node := range removal.rejoining(ctx, declared, turns) {
				first = append(first, node.Name)
			}
			assert.Equal(t, one.first, first, name)
			return err
		}), name)
	}
}

// A later run must still miss a node that has not joined again. Without such a node, nothing runs again.
func TestRejoin_WhoGivesTurnsKnowsWhichMachinesWereReplaced(t *testing.T) {
	var spec upgrade.Spec
	read(t, up(t, func(c *cluster.Cluster) { workers(c).Nodes[0].Generation = 3 }), "infra-upgrade", &spec)
	for _, node := range spec.Nodes {
		assert.Equal(t, map[string]int{"infra-worker-1": 3}[node.Name], node.Generation, node.Name)
	}
}
