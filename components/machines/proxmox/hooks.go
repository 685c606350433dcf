package proxmox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
	"github.com/slipway-platform/slipway/components/machines/proxmox/vmchange"
)

// declaredInputs are the blocks of which the state gives only the inputs that vmArgs declares: for others (cpu.affinity, memory.hugepages),
// the provider stores "", and then refuses it.
var declaredInputs = map[string][]string{"cpu": {"cpu.cores", "cpu.type"}, "memory": {"memory.dedicated"}}

// allInputs returns the paths of all inputs that a VM can have.
func allInputs() []string {
	var paths []string
	for field := range (vm.VirtualMachineArgs{}).ElementType().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("pulumi"), ",")
		if declared, some := declaredInputs[name]; some {
			paths = append(paths, declared...)
			continue
		}
		paths = append(paths, name)
	}
	return paths
}

// hooks returns the hooks of a VM.
//
// Before a creation, the VM of an interrupted creation is removed: that VM is not in the state, and its id is taken. This hook runs
// neither in previews nor for a VM that is in the state.
//
// Before an update, disks that would become smaller or disappear are refused, and a move to another Proxmox node is checked, in previews
// too. Then the VM is compared with the state, and the move is prepared. An update that reboots the machine waits for the node's turn,
// which ends after the update. If the update changes disks, the drain must have detached all that the state does not know.
//
// created is set once nothing is in the way of a creation, which then follows.
//
// The VM of a node that is left out stays as it is.
func (m maker) hooks(ctx *pulumi.Context, name string, node cluster.Machine, created *atomic.Bool) (pulumi.ResourceOption, error) {
	if m.Lifecycle.Skip.Has(node.Name) {
		return m.StaysAsIs(ctx, name, node, allInputs()...)
	}
	background, api, left := ctx.Context(), api(m.Cluster), declaredVM(m.Cluster, node)
	leftover, err := ctx.RegisterResourceHook(m.NameOf(node.Name, "reclaim"), func(*pulumi.ResourceHookArgs) error {
		err := reclaim.Reclaim(background, api, left)
		created.Store(err == nil)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	move, err := m.prepareMove(ctx, node)
	if err != nil {
		return nil, err
	}
	keep, err := ctx.RegisterResourceHook(m.NameOf(node.Name, "disks"), func(change *pulumi.ResourceHookArgs) error {
		return refuseDisks(node, mappable(change.OldInputs))
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	hooks, err := m.turns.Hooks(ctx, machines.Update{
		Resource: name, Node: node, Before: []*pulumi.ResourceHook{keep, move}, Reboots: reboots, Grows: grows, Foreign: foreign(api, node),
		Silent: silent,
		Power: func(ctx context.Context) (machines.Power, error) {
			off, waiting, err := reclaim.Power(ctx, api, node.VMID)
			return machines.Power{Off: off, Waiting: waiting}, err
		},
		Restart: func(ctx context.Context) error { return reclaim.Restart(ctx, api, node.VMID) },
	})
	if err != nil {
		return nil, err
	}
	hooks.BeforeCreate = slices.Concat([]*pulumi.ResourceHook{leftover}, hooks.BeforeCreate)
	return pulumi.ResourceHooks(hooks), nil
}

// prepareMove returns the hook that refuses a move without a pin or maintenance, and the update of a VM that is not as the state says, and
// that prepares any other move.
func (m maker) prepareMove(ctx *pulumi.Context, node cluster.Machine) (*pulumi.ResourceHook, error) {
	background, api := ctx.Context(), api(m.Cluster)
	return ctx.RegisterResourceHook(m.NameOf(node.Name, "move"), func(change *pulumi.ResourceHookArgs) error {
		from, moves := movedFrom(change.OldOutputs, node)
		if moves && !mayMove(node, change.OldInputs) {
			return errNotPinned(node, from, m.Cluster.Proxmox.Nodes)
		}
		if ctx.DryRun() {
			return nil
		}
		seen, err := reclaim.Look(background, api, node.VMID)
		if err != nil {
			return errNotSeen(node, err)
		}
		if err := checkState(node, change, seen); err != nil {
			return err
		}
		// With a shared storage for images, the disks are mostly shared, too: such a VM migrates with its snapshots.
		local := moves && !m.Proxmox.Datastores.ISOShared
		if err := refuseSnapshot(node, change, local, seen); err != nil {
			return err
		}
		if local {
			return reclaim.Eject(background, api, from, node.VMID)
		}
		return nil
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
}

// reboots returns the inputs whose change may reboot the VM.
func reboots(change *pulumi.ResourceHookArgs) []string {
	return vmchange.Rebooting(mappable(change.OldInputs), mappable(change.NewInputs))
}

// grows returns the disks that become bigger.
func grows(change *pulumi.ResourceHookArgs) []string {
	return vmchange.Grown(mappable(change.OldInputs), mappable(change.NewInputs))
}

// silent says what brings a machine back that does not answer after a change.
func silent(change *pulumi.ResourceHookArgs) string {
	mac := vmchange.NewMAC(mappable(change.OldInputs), mappable(change.NewInputs))
	if mac == "" {
		return ""
	}
	return fmt.Sprintf("its VM has the new MAC address %s, which Talos knows only after a reboot: reboot the VM in Proxmox VE if it has not "+
		"rebooted since, and let switches and firewalls that know its former address take this one", mac)
}

// foreign returns what finds a disk that an update of a VM's disks would take out of the VM, and that the state does not know.
func foreign(api reclaim.API, node cluster.Machine) func(*pulumi.ResourceHookArgs) func(context.Context) string {
	return func(change *pulumi.ResourceHookArgs) func(context.Context) string {
		if !slices.Contains(reboots(change), "disks") {
			return nil
		}
		return func(ctx context.Context) string {
			seen, err := reclaim.Look(ctx, api, node.VMID)
			if err != nil {
				return err.Error()
			}
			return notOurs(node, change, seen)
		}
	}
}

// mappable returns properties as plain values, without secrets and outputs around them.
func mappable(properties resource.PropertyMap) map[string]any {
	return properties.MapRepl(nil, unwrap)
}

func unwrap(value resource.PropertyValue) (any, bool) {
	if value.IsSecret() || value.IsOutput() {
		return component.Plain(value).MapRepl(nil, unwrap), true
	}
	return nil, false
}
