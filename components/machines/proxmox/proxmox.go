// Package proxmox makes machines: VMs of a Proxmox VE cluster, and the images that they boot from.
package proxmox

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// Hypervisor makes the machines of a talos.TalosCluster on the Proxmox VE cluster that is declared with them. It registers no component:
// all resources are children of the TalosCluster.
type Hypervisor struct {
	Provider pulumi.ProviderResource // of Proxmox VE; required
}

// Validate returns every problem of the arguments.
func (h Hypervisor) Validate() error {
	if h.Provider == nil {
		return errors.New("hypervisor.provider: is missing; pass an explicit provider of Proxmox VE")
	}
	return nil
}

// CheckNew returns the hook that checks all VMs of a new cluster, and what their Proxmox nodes have for them. A stack without machine
// secrets has no VMs: VMs that exist belong to another checkout, or to a state that was lost.
func (h Hypervisor) CheckNew(ctx *pulumi.Context, owner machines.Owner) (*pulumi.ResourceHook, error) {
	background, api := ctx.Context(), api(owner.Cluster)
	planned := reclaim.Cluster{
		VMs: declaredVMs(owner.Cluster), Hosts: neededHosts(owner.Cluster),
		ISO: owner.Proxmox.Datastores.ISO, ISOShared: owner.Proxmox.Datastores.ISOShared,
	}
	warn := func(line string) { _ = ctx.Log.Warn(line, &pulumi.LogArgs{Resource: owner.Component}) } // the run goes on without it
	return ctx.RegisterResourceHook(owner.NameOf("check"), func(*pulumi.ResourceHookArgs) error {
		return reclaim.Check(background, api, planned, warn)
	}, nil)
}

// api returns the access to Proxmox VE, for what the provider does not do.
func api(c *cluster.Cluster) reclaim.API {
	return reclaim.API{
		Endpoint: c.Proxmox.Endpoint,
		Token:    c.ProxmoxAPIToken.Reveal(), // if unset, it is read from the environment, as by the provider
		Insecure: c.Proxmox.Insecure,
	}
}

// declaredVMs returns the VMs of all machines as their creation expects them.
func declaredVMs(c *cluster.Cluster) (all []reclaim.VM) {
	for _, node := range c.Machines() {
		all = append(all, declaredVM(c, node))
	}
	return all
}

func declaredVM(c *cluster.Cluster, node cluster.Machine) reclaim.VM {
	return reclaim.VM{
		Host: node.Host, ID: node.VMID, Name: node.Name,
		Description: description(c, node), Address: node.Address.String(),
	}
}

// hosts returns the Proxmox nodes of the machines, each once.
func hosts(c *cluster.Cluster) []string {
	var hosts []string
	for _, node := range c.Machines() {
		if !slices.Contains(hosts, node.Host) {
			hosts = append(hosts, node.Host)
		}
	}
	return hosts
}
