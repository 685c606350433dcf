package talos

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
)

// Join creates the workers that join after the gate, once the resources in after exist. They are the same resources that
// NewTalosCluster creates when workers join in parallel: a stack can change between the two orders without any change of a
// machine. It returns the resources to wait for, which Leaves then includes. Call it once.
func (c *TalosCluster) Join(ctx *pulumi.Context, after []pulumi.Resource) ([]pulumi.Resource, error) {
	if c.builder == nil {
		return nil, errors.New("join: the workers of this cluster have joined already, or NewTalosCluster did not create it; call it once")
	}
	b := *c.builder
	b.ctx, c.builder = ctx, nil
	vms, err := b.makeMachines(b.JoiningMachines(), after)
	if err != nil {
		return nil, component.Failed(typeTalosCluster, b.name, err)
	}
	applies, turns, err := b.configure(b.JoiningMachines(), vms)
	if err != nil {
		return nil, component.Failed(typeTalosCluster, b.name, err)
	}
	joined := slices.Concat(applies, turns)
	c.leaves, c.applies = append(c.leaves, joined...), slices.Concat(c.applies, applies)
	return joined, nil
}
