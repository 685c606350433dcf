package talos

import (
	"slices"

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

// checkNewCluster returns the hook that checks all VMs, right before the machine secrets are created. A stack without machine secrets
// has no VMs: VMs that exist belong to another checkout, or to a state that was lost. Everything that has an effect on Proxmox VE or
// on the image factory comes after the machine secrets, so that a refused run has none. The hook does not run in previews.
func (b *builder) checkNewCluster() (pulumi.ResourceOption, error) {
	ctx, api := b.ctx.Context(), b.api()
	planned := reclaim.Cluster{ISO: b.Proxmox.Datastores.ISO, ISOShared: b.Proxmox.Datastores.ISOShared}
	for _, node := range b.Machines() {
		planned.VMs = append(planned.VMs, b.declaredVM(node))
	}
	hook, err := b.ctx.RegisterResourceHook(b.name+"-check", func(*pulumi.ResourceHookArgs) error {
		return reclaim.Check(ctx, api, planned)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}

// vmHooks returns the hooks of a VM.
//
// Before a creation, the VM of an interrupted creation is removed: that VM is not in the state, and its id is taken. This hook runs
// neither in previews nor for a VM that is in the state.
func (b *builder) vmHooks(node cluster.Machine) (pulumi.ResourceOption, error) {
	ctx, api, left := b.ctx.Context(), b.api(), b.declaredVM(node)
	leftover, err := b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-reclaim", func(*pulumi.ResourceHookArgs) error {
		return reclaim.Reclaim(ctx, api, left)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{leftover}}), nil
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
