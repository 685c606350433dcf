package proxmox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// Place registers a resource that stores the Proxmox node of each machine, without regard to maintenance. A machine without a pin gets its
// Proxmox node by its position, so a new Proxmox node moves other machines. If an existing machine would move without a pin, a preview or
// run fails before it changes anything, and names the pins of all such machines.
func (h Hypervisor) Place(ctx *pulumi.Context, owner machines.Owner, after []pulumi.Resource) (pulumi.Resource, error) {
	declared, name := owner.Machines(), owner.NameOf("hosts")
	hook, err := ctx.RegisterResourceHook(name, func(change *pulumi.ResourceHookArgs) error {
		return refuseMoves(declared, owner.Cluster.Proxmox.Nodes, component.Plain(change.OldInputs["input"]))
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	hosts := pulumi.StringMap{}
	for _, node := range declared {
		hosts[node.Name] = pulumi.String(node.Home())
	}
	return pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: hosts}, pulumi.Parent(owner.Component), pulumi.DependsOn(after),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}))
}

// refuseMoves returns an error for every machine that would move from its stored Proxmox node without a pin. hosts are those that are
// declared.
func refuseMoves(machines []cluster.Machine, hosts []string, stored resource.PropertyValue) error {
	if !stored.IsObject() {
		return nil
	}
	var problems []error
	for _, node := range machines {
		from := component.Plain(stored.ObjectValue()[resource.PropertyKey(node.Name)])
		if from.IsString() && from.StringValue() != node.Home() && !node.Pinned() {
			problems = append(problems, errNotPinned(node, from.StringValue(), hosts))
		}
	}
	return errors.Join(problems...)
}

// movedFrom returns the Proxmox node that a VM is on, and whether another node is declared.
func movedFrom(vm resource.PropertyMap, node cluster.Machine) (from string, moves bool) {
	value := component.Plain(vm["nodeName"])
	if !value.IsString() {
		return "", false
	}
	return value.StringValue(), value.StringValue() != node.Host
}

// refuseSnapshot refuses to move a VM with a snapshot, or a disk of it. Proxmox VE says why it does not migrate the VM in the log of a task
// only, and that it does not move a disk after the provider has shut the VM down.
func refuseSnapshot(node cluster.Machine, change *pulumi.ResourceHookArgs, moves bool, seen reclaim.Seen) error {
	becomes := optionsOf(mappable(change.NewInputs))
	for option, is := range seen.Options {
		to, declared := becomes[option]
		moves = moves || strings.HasSuffix(option, reclaim.OptionDatastore) && declared && to != is
	}
	if seen.Snapshot == "" || !moves {
		return nil
	}
	return fmt.Errorf("%[1]s: VM %[2]d has the snapshot %[3]s, with which Proxmox VE does not move it: run qm delsnapshot %[2]d %[3]s on "+
		"Proxmox node %[4]s, for each snapshot of the VM, then up again", node.Name, node.VMID, seen.Snapshot, seen.Node)
}

// errNotPinned refuses to move a machine to a Proxmox node that the stack file does not name for it. It may stay if its Proxmox node is
// still one of the declared hosts.
func errNotPinned(node cluster.Machine, from string, hosts []string) error {
	remedy := fmt.Sprintf("%s is no longer in proxmox.nodes: write host: %s at %s to move it", from, node.Home(), node.Path)
	if slices.Contains(hosts, from) {
		remedy = fmt.Sprintf("write host: %s at %s to keep it there, or host: %s to move it", from, node.Path, node.Home())
	}
	return fmt.Errorf("%s: %s was placed on %s, and without a host it would be placed on %s now; %s", node.Path, node.Name, from, node.Home(),
		remedy)
}

// awayTag is the tag of a VM that maintenance keeps away from its own Proxmox node. The state has it, too: so a later run may bring the VM
// back, although its Proxmox node is not written in the stack file.
const awayTag = "slipway-maintenance"

// away reports whether maintenance keeps a machine away from its own Proxmox node.
func away(node cluster.Machine) bool { return node.Host != node.Home() }

// mayMove reports whether the stack file says that a VM, which had some inputs, moves: by a pin, for maintenance, or home from maintenance.
func mayMove(node cluster.Machine, was resource.PropertyMap) bool {
	tags, _ := mappable(was)["tags"].([]any)
	return node.Pinned() || away(node) || slices.Contains(tags, any(awayTag))
}
