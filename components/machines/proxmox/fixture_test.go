package proxmox

import (
	"testing"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// Type tokens of the resources.
const (
	typeISO = "proxmoxve:Download/file:File"
	typeVM  = "proxmoxve:VM/virtualMachine:VirtualMachine"
)

// schematicID is the id of the images at the image factory.
const schematicID = "infra-schematic-id"

// declared returns the committed infra cluster (three control planes and two workers on three hosts), after the changes.
func declared(t *testing.T, changes ...func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	tag := func(c *cluster.Cluster) { c.Proxmox.Tags = []string{"homelab", "slipway"} }
	return clusters.Infra(t, append([]func(*cluster.Cluster){tag}, changes...)...)
}

// workers returns the pool of the cluster's workers.
func workers(c *cluster.Cluster) *cluster.NodePool { return &c.NodePools[1] }

// noTurns are those of a cluster that does not run.
type noTurns struct{}

func (noTurns) Hooks(_ *pulumi.Context, update machines.Update) (*pulumi.ResourceHookBinding, error) {
	return &pulumi.ResourceHookBinding{BeforeUpdate: update.Before}, nil
}

// up records the machines of a cluster without Talos, after the changes.
func up(t *testing.T, changes ...func(*cluster.Cluster)) *mocks.Recorder {
	t.Helper()
	recorder := &mocks.Recorder{}
	require.NoError(t, recorder.Run(program(declared(t, changes...))))
	return recorder
}

// program returns a program that registers all machines of a cluster, as a TalosCluster does.
func program(c *cluster.Cluster) pulumi.RunFunc {
	return func(ctx *pulumi.Context) error {
		provider, err := proxmoxve.NewProvider(ctx, "proxmox", nil)
		if err != nil {
			return err
		}
		commands, err := command.NewProvider(ctx, "command", nil)
		if err != nil {
			return err
		}
		var owner pulumi.ResourceState
		if err := ctx.RegisterComponentResource("test:index:Owner", "infra", &owner); err != nil {
			return err
		}
		return registerAll(ctx, Hypervisor{Provider: provider},
			machines.Owner{Cluster: c, Component: &owner, Name: "infra", CommandProvider: commands})
	}
}

func registerAll(ctx *pulumi.Context, hypervisor machines.Hypervisor, owner machines.Owner) error {
	if _, err := hypervisor.CheckNew(ctx, owner); err != nil {
		return err
	}
	placed, err := hypervisor.Place(ctx, owner, nil)
	if err != nil {
		return err
	}
	images, err := hypervisor.Images(ctx, owner, pulumi.String(schematicID).ToStringOutput(), []pulumi.Resource{placed})
	if err != nil {
		return err
	}
	maker, err := images.Maker(ctx, noTurns{}, nil)
	if err != nil {
		return err
	}
	for _, node := range owner.Machines() {
		if _, err := maker.Make(ctx, machines.Order{Node: node}); err != nil {
			return err
		}
	}
	return nil
}
