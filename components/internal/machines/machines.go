// Package machines is what a hypervisor (a folder of components/machines) and a cluster on its machines (components/talos) know of each
// other: neither of the two imports the other, and a program passes a hypervisor to the cluster.
//
// The resources of a hypervisor are children of the cluster's component. Their order mixes with that of the cluster's own resources: the
// images come after the machine secrets, and the machines after the removal of nodes. So the cluster calls the hypervisor, step by step,
// and what a step returns makes the next.
package machines

import (
	"context"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// Owner is the component of a cluster, whose children all resources are.
type Owner struct {
	*cluster.Cluster // as declared

	Component       pulumi.Resource
	Name            string                  // of the component; prefix of the children's names
	CommandProvider pulumi.ProviderResource // of runs of slipway-probe
}

// NameOf returns the name of a child, or of its hook.
func (o Owner) NameOf(parts ...string) string { return o.Name + "-" + strings.Join(parts, "-") }

// Child combines the options of every child with the child's own.
func (o Owner) Child(provider pulumi.ProviderResource, own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return component.Child(o.Component, provider, own...)
}

// StaysAsIs returns the option by which a resource of a left-out node stays as it is in the state, whatever is declared: it is neither
// changed nor replaced nor deleted. Once the node is not left out any more, the differences show, and the node takes its turn. A resource
// that does not exist is not created, in previews too: name is the resource's name, and inputs are the paths of its inputs.
func (o Owner) StaysAsIs(ctx *pulumi.Context, name string, node cluster.Machine, inputs ...string) (pulumi.ResourceOption, error) {
	absent, err := ctx.RegisterResourceHook(name+"-absent", func(*pulumi.ResourceHookArgs) error {
		return fmt.Errorf("lifecycle.skip: names %s, and %s does not exist yet; remove %[1]s from lifecycle.skip, or from nodePools until it "+
			"can be made", node.Name, name)
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	return pulumi.Composite(pulumi.IgnoreChanges(inputs),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{absent}})), nil
}

// Hypervisor makes the machines of a cluster. The methods are called once for each cluster, in the order in which they stand here.
type Hypervisor interface {
	// Validate returns every problem of the hypervisor's own arguments.
	Validate() error

	// CheckNew returns a hook that runs right before the first resource of a new cluster is created, and not in previews. It changes
	// nothing, and returns every reason why the machines cannot be created.
	CheckNew(ctx *pulumi.Context, owner Owner) (*pulumi.ResourceHook, error)

	// Place registers the resource that stores where each machine is, after the resources in after. It refuses, in previews too, moves
	// that the stack file does not declare.
	Place(ctx *pulumi.Context, owner Owner, after []pulumi.Resource) (pulumi.Resource, error)

	// Images registers the images that the machines boot from, after the resources in after. schematic is their id at Talos's image
	// factory.
	Images(ctx *pulumi.Context, owner Owner, schematic pulumi.StringOutput, after []pulumi.Resource) (Images, error)
}

// Images are the images that machines boot from.
type Images interface {
	// Maker returns what makes machines that boot from the images. What it registers for all machines comes after the resources in after.
	Maker(ctx *pulumi.Context, turns Turns, after []pulumi.Resource) (Maker, error)
}

// Maker makes machines.
type Maker interface {
	// Make creates a machine and starts it.
	Make(ctx *pulumi.Context, order Order) (Machine, error)
}

// Order says how a machine is made.
type Order struct {
	Node      cluster.Machine
	Protect   bool              // Pulumi neither deletes nor replaces the machine
	DependsOn []pulumi.Resource // resources that must exist before the machine; optional
}

// Machine is a running machine, from its boot image or from its disk.
type Machine struct {
	Node     cluster.Machine
	Resource pulumi.Resource
	// Incarnation tells the machine from an earlier one with the same name. It is "" if the hypervisor cannot tell.
	Incarnation pulumi.StringOutput
	// Hardware names what the hypervisor makes of the machine beside what Node declares; "" for its defaults.
	Hardware string

	// New reports whether this run has created the machine. It is asked once Resource exists.
	New func() bool
	// Reset presses the reset button of the machine, which nothing on it can refuse.
	Reset func(context.Context) error
}

// Turns lets the nodes of a running cluster change one after the other.
type Turns interface {
	// Hooks returns the hooks with which the resource of a machine is updated in its node's turn. In a preview they announce a reboot.
	Hooks(ctx *pulumi.Context, update Update) (*pulumi.ResourceHookBinding, error)
}

// Update says which updates of a machine's resource take a turn.
type Update struct {
	Resource string // name of the resource
	Node     cluster.Machine
	Before   []*pulumi.ResourceHook // hooks before the update, which come before the turn; optional

	// Reboots returns the changed inputs for which the hypervisor reboots the machine; none means that the update takes no turn.
	Reboots func(*pulumi.ResourceHookArgs) []string
	// Grows returns the disks that become bigger, whose space the machine uses after a reboot only. The hypervisor may not reboot it.
	Grows func(*pulumi.ResourceHookArgs) []string
	// Foreign returns what says which disk of somebody else, such as a volume, the update would take out of the machine; that says "" if
	// there is none. A drain detaches volumes. It returns nil for an update that takes none out.
	Foreign func(*pulumi.ResourceHookArgs) func(context.Context) string
	// Silent says what brings the machine back if it does not answer after the update; "" if nothing is known.
	Silent func(*pulumi.ResourceHookArgs) string
	// Power reports whether the machine is off, and which changes of it wait until it was.
	Power func(context.Context) (Power, error)
	// Restart switches the machine off and on, or on if it is off.
	Restart func(context.Context) error
}

// Power is whether a machine is off. Then no node is interrupted.
type Power struct {
	Off     bool
	Waiting []string // properties whose change waits until the machine was off
}
