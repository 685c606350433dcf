package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// leftovers registers what removes VMs and images of interrupted runs when the cluster is destroyed: they are in no state, so that Pulumi
// does not delete them. The images depend on this resource, and the VMs on the images, so that it is deleted after them.
func (b *builder) leftovers(after []pulumi.Resource) (pulumi.Resource, error) {
	left := reclaim.Leftovers{API: b.api()}
	for _, node := range b.Machines() {
		left.VMs = append(left.VMs, b.declaredVM(node))
	}
	hosts := b.hosts()
	if b.Proxmox.Datastores.ISOShared {
		hosts = hosts[:1]
	}
	spec := b.schematic.ApplyT(func(schematic string) (string, error) {
		spec := left
		for _, host := range hosts {
			spec.Images = append(spec.Images, b.imageOf(host)(schematic))
		}
		return probe.Encode(&spec)
	}).(pulumi.StringOutput)
	return step.NewRemoval(b.ctx, b.name+"-leftovers", step.RemovalArgs{
		Subcommand: "leftovers", Spec: spec, Timeout: 2 * reclaim.DefaultTimeout, Provider: b.args.CommandProvider, DependsOn: after,
	}, b.parent)
}
