package talos

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
)

// machinery has machines made.
type machinery struct {
	*registrar

	maker   machines.Maker
	placed  pulumi.Resource   // refuses moves of machines
	removal *removal          // knows which machines are replaced
	again   []cluster.Machine // those that are replaced, and join again before all others are changed
}

// make shows the configurations of machines and has the machines made in parallel, after the resources in after. It returns them in the
// order of declared.
func (m machinery) make(ctx *pulumi.Context, declared []cluster.Machine, after []pulumi.Resource) ([]machines.Machine, error) {
	var made []machines.Machine
	for _, node := range declared {
		if err := m.show(ctx, node, m.placed); err != nil {
			return nil, err
		}
		one, err := m.maker.Make(ctx, machines.Order{Node: node, Protect: m.removal.protects(ctx, node), DependsOn: after})
		if err != nil {
			return nil, err
		}
		m.removal.tell(ctx, one)
		made = append(made, one)
	}
	return made, nil
}

// others returns those of the machines that do not join again.
func (m machinery) others(of []cluster.Machine) []cluster.Machine {
	return xslices.Filter(of, func(machine cluster.Machine) bool {
		return !slices.ContainsFunc(m.again, func(again cluster.Machine) bool { return again.Name == machine.Name })
	})
}

// joins makes the nodes that join later as the first ones were made.
type joins struct {
	machinery  machinery
	configurer configurer
}

// Join creates the workers that join after the gate, once the resources in after exist. They are the same resources that
// NewTalosCluster creates when workers join in parallel: a stack can change between the two orders without any change of a
// machine. It returns the resources to wait for, which Leaves then includes. Call it once.
func (c *TalosCluster) Join(ctx *pulumi.Context, after []pulumi.Resource) ([]pulumi.Resource, error) {
	joins := c.joins
	if joins == nil {
		return nil, errors.New("join: the workers of this cluster have joined already, or NewTalosCluster did not create it; call it once")
	}
	c.joins = nil
	made, err := joins.machinery.make(ctx, joins.machinery.others(joins.machinery.JoiningMachines()), after)
	if err != nil {
		return nil, component.Failed(typeTalosCluster, joins.machinery.Name, err)
	}
	c.nodes = append(c.nodes, c.later...)
	joined, err := c.add(ctx, joins.configurer, made)
	if err != nil {
		return nil, component.Failed(typeTalosCluster, joins.machinery.Name, err)
	}
	return joined, nil
}
