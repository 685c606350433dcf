package proxmox

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
	"github.com/slipway-platform/slipway/internal/probe"
)

// leftoverImages registers what removes the cluster's images when the cluster is destroyed: Pulumi deletes none of them, and those of
// earlier releases and of interrupted runs are in no state. The images in the state depend on this resource, so that it is deleted after
// them.
func leftoverImages(
	ctx *pulumi.Context, owner machines.Owner, schematic pulumi.StringOutput, after []pulumi.Resource,
) (pulumi.Resource, error) {
	spec := schematic.ApplyT(func(schematic string) (string, error) {
		left := reclaim.Leftovers{API: api(owner.Cluster), ImagesOf: owner.Identity.Name}
		for _, image := range imagesOf(owner.Cluster) {
			left.Images = append(left.Images, fileOf(image, owner.Cluster, schematic))
		}
		return probe.Encode(&left)
	}).(pulumi.StringOutput)
	return removal(ctx, owner, "leftovers", spec, after)
}

// leftoverVMs registers what removes VMs of interrupted runs when the cluster is destroyed. Every VM in the state depends on this resource,
// and this resource on the images: only a VM that boots, from its image, shows that it holds no data. It is registered right before the
// VMs: a VM in the state that does not depend on it yet is deleted at the same time.
func (i images) leftoverVMs(ctx *pulumi.Context, after []pulumi.Resource) (pulumi.Resource, error) {
	spec, err := probe.Encode(&reclaim.Leftovers{API: api(i.Cluster), VMs: declaredVMs(i.Cluster)})
	if err != nil {
		return nil, err
	}
	for _, image := range imagesOf(i.Cluster) {
		after = append(after, i.files[image])
	}
	return removal(ctx, i.Owner, "leftover-vms", pulumi.String(spec), after)
}

func removal(
	ctx *pulumi.Context, owner machines.Owner, name string, spec pulumi.StringInput, after []pulumi.Resource,
) (pulumi.Resource, error) {
	return step.NewRemoval(ctx, owner.NameOf(name), step.Run{
		Subcommand: "leftovers", Spec: spec, Timeout: 2 * reclaim.DefaultTimeout, Provider: owner.CommandProvider, DependsOn: after,
	}, owner.Component)
}
