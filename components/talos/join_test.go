package talos

import (
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const typeGate = "test:index:Gate"

// joinAfterGate makes the workers join after the gate, one of them on a host that no other machine uses.
func joinAfterGate(c *cluster.Cluster) {
	c.Proxmox.Nodes = append(c.Proxmox.Nodes, "pve4")
	workers(c).Nodes[1].Host = "pve4"
	c.Workers.Join = cluster.JoinAfterGate
}

// joined records a cluster whose workers join after a gate. The gate waits for the control planes.
func joined(t *testing.T, recorder *mocks.Recorder, more func(*pulumi.Context, *TalosCluster, []pulumi.Resource) error) *mocks.Recorder {
	t.Helper()
	recorder = answers(recorder)
	require.NoError(t, recorder.Run(program(arguments(t, joinAfterGate), func(ctx *pulumi.Context, c *TalosCluster) error {
		gate := &struct{ pulumi.CustomResourceState }{}
		if err := ctx.RegisterResource(typeGate, "gate", pulumi.Map{}, gate, pulumi.DependsOn(c.Leaves())); err != nil {
			return err
		}
		leaves, err := c.Join(ctx, []pulumi.Resource{gate})
		if err != nil || more == nil {
			return err
		}
		return more(ctx, c, leaves)
	})))
	return recorder
}

func TestJoin_MakesWorkersAfterTheGate(t *testing.T) {
	r := joined(t, &mocks.Recorder{}, nil)
	gate := r.Only(t, typeGate)
	boot := r.Resource(t, "infra-bootstrap")
	assert.True(t, r.After(gate, boot))
	for _, node := range allMachines(t) {
		vm, apply := r.Resource(t, "infra-"+node.Name+"-vm"), r.Resource(t, "infra-"+node.Name+"-apply")
		worker := node.Role == cluster.Worker
		assert.Equal(t, worker, r.After(vm, gate), vm.Name)
		assert.Equal(t, worker, r.After(apply, gate), apply.Name)
		assert.Equal(t, !worker, r.After(boot, apply), "the cluster starts without %s", node.Name)
		assert.Equal(t, !worker, r.After(gate, apply), apply.Name)
		assert.Equal(t, !worker, vm.Protect, vm.Name)
	}
}

func TestJoin_RegistersTheSameResourcesAsWorkersThatJoinInParallel(t *testing.T) {
	later := joined(t, &mocks.Recorder{}, nil)
	atOnce := up(t, joinAfterGate, func(c *cluster.Cluster) { c.Workers.Join = cluster.JoinParallel })
	urns := func(r *mocks.Recorder) (list []string) {
		for _, reg := range r.Resources() {
			if reg.Type != typeGate {
				list = append(list, reg.URN)
			}
		}
		slices.Sort(list)
		return list
	}
	assert.Equal(t, urns(atOnce), urns(later))
	for _, reg := range atOnce.Resources() {
		same := later.Resource(t, reg.Name)
		assert.Equal(t, reg.Inputs, same.Inputs, reg.Name)
		assert.Equal(t, reg.Parent, same.Parent, reg.Name)
		assert.Equal(t, reg.IgnoreChanges, same.IgnoreChanges, reg.Name)
	}
}

func TestJoin_DownloadsTheImageToTheHostsOfThoseThatJoinWithTheOthers(t *testing.T) {
	r := joined(t, &mocks.Recorder{}, nil)
	assert.Len(t, r.OfType(typeISO), 4)
	image := r.Resource(t, "infra-pve4-iso")
	assert.False(t, r.After(image, r.Only(t, typeGate)), "it does not wait for the gate")
	assert.True(t, r.After(r.Resource(t, "infra-infra-worker-2-vm"), image))
}

func TestJoin_ReturnsTheResourcesToWaitFor(t *testing.T) {
	r := joined(t, &mocks.Recorder{}, func(ctx *pulumi.Context, c *TalosCluster, leaves []pulumi.Resource) error {
		assert.Len(t, leaves, 2+1)
		assert.Len(t, c.Leaves(), 3+2+2+1, "three control planes, bootstrap, kubeconfig, two workers, and what remembers their turns")
		for _, leaf := range leaves { // compared as pointers: a deep look would read outputs that are being resolved
			assert.True(t, slices.Contains(c.Leaves(), leaf))
		}
		var second struct{ pulumi.ResourceState }
		if err := ctx.RegisterComponentResource("test:index:After", "second", &second, pulumi.DependsOn(leaves)); err != nil {
			return err
		}
		_, err := c.Join(ctx, nil)
		assert.ErrorContains(t, err, "have joined already")
		return nil
	})
	second := r.Resource(t, "second")
	for _, name := range []string{"infra-infra-worker-1-apply", "infra-infra-worker-2-apply"} {
		assert.Contains(t, second.Dependencies, r.Resource(t, name).URN)
	}
}

func TestJoin_TheTalosconfigListsTheWorkersFromTheStart(t *testing.T) {
	for _, call := range joined(t, &mocks.Recorder{}, nil).Calls() {
		if call.Token == callTalosconfig {
			assert.ElementsMatch(t, []any{"10.25.11.11", "10.25.11.12", "10.25.11.13", "10.25.11.21", "10.25.11.22"}, call.Args.Mappable()["nodes"])
			return
		}
	}
	t.Fatal("no talosconfig was generated")
}

func TestJoin_IsPreviewedWithTheRest(t *testing.T) {
	assert.Equal(t, joined(t, &mocks.Recorder{}, nil).Names(), joined(t, &mocks.Recorder{DryRun: true}, nil).Names())
}

func TestJoin_RegistersNothingWithoutWorkers(t *testing.T) {
	recorder := answers(&mocks.Recorder{})
	require.NoError(t, recorder.Run(program(arguments(t), func(ctx *pulumi.Context, c *TalosCluster) error {
		leaves, err := c.Join(ctx, nil)
		assert.Empty(t, leaves)
		return err
	})))
	assert.Equal(t, up(t).Names(), recorder.Names())
}
