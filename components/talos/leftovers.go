package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/probe"
)

// leftoverImages registers what removes images of interrupted runs when the cluster is destroyed: they are in no state, so that Pulumi does
// not delete them. The images in the state depend on this resource, so that it is deleted after them.
func (b *builder) leftoverImages(after []pulumi.Resource) (pulumi.Resource, error) {
	hosts := b.hosts()
	if b.Proxmox.Datastores.ISOShared {
		hosts = hosts[:1]
	}
	spec := b.schematic.ApplyT(func(schematic string) (string, error) {
		left := reclaim.Leftovers{API: b.api()}
		for _, host := range hosts {
			left.Images = append(left.Images, b.imageOf(host)(schematic))
		}
		return probe.Encode(&left)
	}).(pulumi.StringOutput)
	return b.removal("leftovers", spec, after)
}

// leftoverVMs registers what removes VMs of interrupted runs when the cluster is destroyed. Every VM in the state depends on this resource,
// and it depends on the images: a VM that was never started must be, before it is known to hold no data, and boots from its image. It is
// registered right before the VMs: one that is in the state and does not depend on it yet is deleted at the same time.
func (b *builder) leftoverVMs() (pulumi.Resource, error) {
	left := reclaim.Leftovers{API: b.api()}
	for _, node := range b.Machines() {
		left.VMs = append(left.VMs, b.declaredVM(node))
	}
	spec, err := probe.Encode(&left)
	if err != nil {
		return nil, err
	}
	after := []pulumi.Resource{b.retired}
	for _, host := range b.hosts() {
		after = append(after, b.images[host])
	}
	return b.removal("leftover-vms", pulumi.String(spec), after)
}

func (b *builder) removal(name string, spec pulumi.StringInput, after []pulumi.Resource) (pulumi.Resource, error) {
	return step.NewRemoval(b.ctx, b.name+"-"+name, step.RemovalArgs{
		Subcommand: "leftovers", Spec: spec, Timeout: 2 * reclaim.DefaultTimeout, Provider: b.args.CommandProvider, DependsOn: after,
	}, b.parent)
}
