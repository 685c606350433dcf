package talos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// skip leaves nodes out.
func skip(names ...string) func(*cluster.Cluster) {
	return func(c *cluster.Cluster) {
		for _, name := range names {
			c.Lifecycle.Skip = append(c.Lifecycle.Skip, cluster.SkippedNode{Name: name, Reason: "waits for a disk"})
		}
	}
}

// read decodes the standard input of a run.
func read(t *testing.T, r *mocks.Recorder, name string, spec any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.Resource(t, name).Input("stdin").(string)), spec))
}

// leaves returns the paths of all values below a path. Those of a list end with it.
func leaves(path string, value any) []string {
	block, ok := value.(map[string]any)
	if !ok {
		return []string{strings.TrimPrefix(path, ".")}
	}
	var paths []string
	for name, one := range block {
		paths = append(paths, leaves(path+"."+name, one)...)
	}
	return paths
}

func TestSkip_TheProviderIsNotGivenWhatItStoredAndRefuses(t *testing.T) {
	kept := up(t, skip("infra-worker-1")).Resource(t, "infra-infra-worker-1-vm").IgnoreChanges
	for _, path := range []string{"*", "cpu", "memory"} {
		assert.NotContains(t, kept, path)
	}
}

func TestSkip_TheResourcesOfANodeThatIsLeftOutStayAsTheyAre(t *testing.T) {
	before, r := up(t), up(t, skip("infra-cp-1", "infra-worker-1"), func(c *cluster.Cluster) { workers(c).Cores += 2 })
	assert.Equal(t, slices.DeleteFunc(before.Names(), func(name string) bool { return strings.HasSuffix(name, " infra-pve1-iso") }), r.Names(),
		"nothing is deleted but the image of the host on which both are")
	left := 0
	for _, resource := range append(r.OfType(typeVM), r.OfType(typeApply)...) {
		hooks := resource.RPC.GetHooks()
		if !strings.Contains(resource.Name, "infra-cp-1") && !strings.Contains(resource.Name, "infra-worker-1") {
			assert.NotContains(t, resource.IgnoreChanges, "*", resource.Name)
			assert.NotEmpty(t, hooks.GetBeforeUpdate(), resource.Name)
			continue
		}
		left++
		for _, path := range leaves("", resource.Inputs.Mappable()) {
			assert.True(t, slices.ContainsFunc(resource.IgnoreChanges, func(kept string) bool {
				return kept == "*" || kept == path || strings.HasPrefix(path, kept+".")
			}), "%s: the engine takes %s from the state", resource.Name, path)
		}
		assert.Equal(t, []string{resource.Name + "-absent"}, resource.BeforeCreate, "it is not created either")
		assert.Empty(t, hooks.GetBeforeUpdate(), "%s takes no turn", resource.Name)
		assert.Empty(t, hooks.GetAfterUpdate(), resource.Name)
		was := before.Resource(t, resource.Name)
		assert.Equal(t, was.Protect, resource.Protect, resource.Name)
		assert.Equal(t, was.RPC.GetReplacementTrigger(), resource.RPC.GetReplacementTrigger(), resource.Name)
	}
	assert.Equal(t, 4, left)
}

func TestSkip_ANodeThatIsBackIsReleasedAndChanged(t *testing.T) {
	was, is := up(t, skip("infra-worker-1")).Resource(t, "infra-turns"), up(t).Resource(t, "infra-turns")
	for _, node := range allMachines(t) {
		path := "input." + node.Name
		assert.Equal(t, node.Name == "infra-worker-1", was.Input(path) != is.Input(path), "%s: its hook runs for a change", path)
	}
}

func TestSkip_APreviewSaysWhatHappensToANodeThatIsNotLeftOutAnyMore(t *testing.T) {
	args := arguments(t, skip("infra-cp-1"))
	turns := &turns{Owner: machines.Owner{Cluster: args.Cluster}}
	former := func(sums map[string]any) *pulumi.ResourceHookArgs {
		return &pulumi.ResourceHookArgs{OldInputs: resource.PropertyMap{
			"input": resource.MakeSecret(resource.NewProperty(resource.NewPropertyMapFromMap(sums))),
		}}
	}
	assert.Equal(t, "infra-worker-1: not left out any more, so up makes up for what has changed meanwhile, one node after the other: another "+
		"version of Talos or Kubernetes, the VM and the configuration; a node is drained if it reboots for that, and schedulable once it is "+
		"healthy", turns.returning(former(map[string]any{"infra-worker-1": leftOut, "infra-cp-1": leftOut, "infra-cp-2": "a sum"})))
	assert.Empty(t, turns.returning(former(map[string]any{"infra-worker-1": "a sum", "infra-cp-1": leftOut, "gone": leftOut})))
	assert.Empty(t, turns.returning(&pulumi.ResourceHookArgs{}))

	r := up(t)
	assert.Equal(t, []string{"infra-turns-returning", "infra-turns"}, r.Resource(t, "infra-turns").RPC.GetHooks().GetBeforeUpdate())
	for _, hook := range r.Hooks() {
		if strings.HasPrefix(hook.Name, "infra-turns") {
			assert.Equal(t, hook.Name == "infra-turns-returning", hook.OnDryRun, hook.Name)
		}
	}
}

func TestSkip_NoNodeIsCreatedThatIsLeftOut(t *testing.T) {
	for _, preview := range []bool{true, false} {
		r := answers(&mocks.Recorder{RunHooks: true, DryRun: preview})
		args := arguments(t, skip("infra-worker-1"))
		args.Cluster.Proxmox.Endpoint = "https://127.0.0.1:1"
		err := r.Run(program(args, nil))
		require.Error(t, err)
		if preview { // a run asks the hypervisor before
			require.ErrorContains(t, err, "lifecycle.skip: names infra-worker-1, and infra-infra-worker-1-vm does not exist yet; remove "+
				"infra-worker-1 from lifecycle.skip, or from nodePools until it can be made")
		}
	}
}

func TestSkip_NoRunAsksANodeThatIsLeftOut(t *testing.T) {
	names := []string{"infra-cp-1", "infra-worker-1"}
	r := up(t, skip(names...))
	declared := arguments(t, skip(names...)).Cluster
	var upgrades upgrade.Spec
	read(t, r, "infra-upgrade", &upgrades)
	require.NoError(t, upgrades.CheckTarget())
	assert.Len(t, upgrades.Nodes, len(allMachines(t))-2)
	assert.Equal(t, declared.Lifecycle.Skip, upgrades.Skip, "its report names them")
	var removes retire.Spec
	read(t, r, "infra-retire", &removes)
	assert.Len(t, removes.Nodes, len(allMachines(t)), "none of them leaves")
	assert.Equal(t, declared.Lifecycle.Skip, removes.Skip)

	first := declared.ControlPlanes()[1].Address
	var begins bootstrap.Spec
	read(t, r, "infra-bootstrap", &begins)
	assert.Len(t, begins.Nodes, 3, "etcd of a node that is left out is still the cluster's")
	assert.Equal(t, declared.Lifecycle.Skip, begins.Skip, "none of them is bootstrapped")
	assert.Equal(t, first.String(), r.Only(t, typeKubeconfig).Input("endpoint"))
	for _, call := range r.Calls() {
		if call.Token != callTalosconfig {
			continue
		}
		text, err := json.Marshal(call.Args.Mappable())
		require.NoError(t, err)
		for _, machine := range declared.Machines() {
			assert.Equal(t, !slices.Contains(names, machine.Name), strings.Contains(string(text), `"`+machine.Address.String()+`"`), machine.Name)
		}
	}
}

func TestSkip_ANewCAIsRefusedInAPreview(t *testing.T) {
	for names, refused := range map[string]bool{"": false, "infra-worker-1": true} {
		args := arguments(t, generation(2, 1, 1), skip(strings.Fields(names)...))
		r := &mocks.Recorder{RunHooks: true, DryRun: true}
		err := r.Run(func(ctx *pulumi.Context) error {
			if err := providers(ctx, args); err != nil {
				return err
			}
			owner := machines.Owner{Cluster: args.Cluster, Component: args.CommandProvider, Name: "infra"}
			_, err := (&registrar{owner, args}).laterGeneration(ctx, replaceables[0], 2, args.CommandProvider)
			return err
		})
		if !refused {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "lifecycle.skip: leaves out infra-worker-1, and every node needs the new CA")
	}
}
