package talos

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
)

// api returns the access to Proxmox VE, for what the provider does not do.
func (b *builder) api() reclaim.API {
	return reclaim.API{
		Endpoint: b.Proxmox.Endpoint,
		Token:    b.ProxmoxAPIToken.Reveal(), // if unset, it is read from the environment, as by the provider
		Insecure: b.Proxmox.Insecure,
	}
}

// declaredVM returns a machine's VM as a creation expects it.
func (b *builder) declaredVM(node cluster.Machine) reclaim.VM {
	return reclaim.VM{
		Host: node.Host, ID: node.VMID, Name: node.Name,
		Description: b.description(node), Address: node.Address.String(),
	}
}

// newClusterHooks returns the hooks that run right before the first machine secrets are created: that the stack file suits a new cluster is
// checked in previews, too, and all VMs in runs only. A stack without machine secrets
// has no VMs: VMs that exist belong to another checkout, or to a state that was lost. Everything that has an effect on Proxmox VE or
// on the image factory comes after the machine secrets, so that a refused run has none.
func (b *builder) newClusterHooks() (pulumi.ResourceOption, error) {
	ctx, api := b.ctx.Context(), b.api()
	planned := reclaim.Cluster{ISO: b.Proxmox.Datastores.ISO, ISOShared: b.Proxmox.Datastores.ISOShared}
	for _, node := range b.Machines() {
		planned.VMs = append(planned.VMs, b.declaredVM(node))
	}
	vms, err := b.ctx.RegisterResourceHook(b.name+"-check", func(*pulumi.ResourceHookArgs) error {
		return reclaim.Check(ctx, api, planned)
	}, nil)
	if err != nil {
		return nil, err
	}
	generation, err := b.refuseLaterGeneration()
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: append(generation, vms)}), nil
}

// vmHooks returns the hooks of a VM.
//
// Before a creation, the VM of an interrupted creation is removed: that VM is not in the state, and its id is taken. This hook runs
// neither in previews nor for a VM that is in the state.
//
// Before an update, a move to another Proxmox node is checked, in previews too, and prepared; and an update that reboots the machine waits
// for the turn of its node, which ends after the update.
func (b *builder) vmHooks(node cluster.Machine) (pulumi.ResourceOption, error) {
	ctx, api, left := b.ctx.Context(), b.api(), b.declaredVM(node)
	leftover, err := b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-reclaim", func(*pulumi.ResourceHookArgs) error {
		return reclaim.Reclaim(ctx, api, left)
	}, nil)
	if err != nil {
		return nil, err
	}
	prepare := !b.ctx.DryRun() && !b.Proxmox.Datastores.ISOShared
	move, err := b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-move", func(change *pulumi.ResourceHookArgs) error {
		from, moves := movedFrom(change.OldOutputs, node)
		switch {
		case !moves:
			return nil
		case !node.Pinned():
			return errNotPinned(node, from)
		case prepare:
			return reclaim.Eject(ctx, api, from, node.VMID)
		}
		return nil
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	reboot, err := b.announceReboot(node)
	if err != nil {
		return nil, err
	}
	hooks, err := b.rebootHooks(node, move, reboot)
	if err != nil {
		return nil, err
	}
	hooks.BeforeCreate = []*pulumi.ResourceHook{leftover}
	return pulumi.ResourceHooks(hooks), nil
}

// imageHooks returns the hook of a boot image: before a creation, the download of an interrupted creation is stopped.
func (b *builder) imageHooks(resource string, image reclaim.Image) (pulumi.ResourceOption, error) {
	ctx, api := b.ctx.Context(), b.api()
	stop, err := b.ctx.RegisterResourceHook(resource+"-download", func(change *pulumi.ResourceHookArgs) error {
		left := image
		left.File = plain(change.NewInputs["fileName"]).StringValue() // known when the image is created
		return reclaim.StopDownload(ctx, api, left)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{stop}}), nil
}

// movedFrom returns the Proxmox node that a VM is on, and whether it is another one than the declared.
func movedFrom(vm resource.PropertyMap, node cluster.Machine) (from string, moves bool) {
	value := plain(vm["nodeName"])
	if !value.IsString() {
		return "", false
	}
	return value.StringValue(), value.StringValue() != node.Host
}

// errNotPinned refuses to move a machine to a Proxmox node that the stack file does not name for it.
func errNotPinned(node cluster.Machine, from string) error {
	return fmt.Errorf("%s: %s was placed on %s, and without a host it would be placed on %s now; "+
		"write host: %s at %s to keep it there, or host: %s to move it", node.Path, node.Name, from, node.Host, from, node.Path, node.Host)
}

// rememberHosts registers a resource that stores the Proxmox node of each machine. A machine without a pin gets its node by its
// position, so that a new Proxmox node changes the nodes of others. A preview or run in which a machine that exists would move without
// a pin fails, before it changes anything, and names the pins of all such machines.
func (b *builder) rememberHosts(after []pulumi.Resource) (pulumi.Resource, error) {
	machines := b.Machines()
	hook, err := b.ctx.RegisterResourceHook(b.name+"-hosts", func(change *pulumi.ResourceHookArgs) error {
		return refuseMoves(machines, plain(change.OldInputs["input"]))
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	hosts := pulumi.StringMap{}
	for _, node := range machines {
		hosts[node.Name] = pulumi.String(node.Host)
	}
	return pulumi.NewStash(b.ctx, b.name+"-hosts", &pulumi.StashArgs{Input: hosts}, pulumi.Parent(b.parent), pulumi.DependsOn(after),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}))
}

// refuseMoves returns an error for every machine that would move from its stored Proxmox node without a pin.
func refuseMoves(machines []cluster.Machine, stored resource.PropertyValue) error {
	if !stored.IsObject() {
		return nil
	}
	var problems []error
	for _, node := range machines {
		from := plain(stored.ObjectValue()[resource.PropertyKey(node.Name)])
		if from.IsString() && from.StringValue() != node.Host && !node.Pinned() {
			problems = append(problems, errNotPinned(node, from.StringValue()))
		}
	}
	return errors.Join(problems...)
}

// hosts returns the Proxmox nodes of the machines, each once.
func (b *builder) hosts() []string {
	var hosts []string
	for _, node := range b.Machines() {
		if !slices.Contains(hosts, node.Host) {
			hosts = append(hosts, node.Host)
		}
	}
	return hosts
}
