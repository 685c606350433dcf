package proxmox

import (
	"net/url"
	"slices"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// images are the boot images by Proxmox node.
type images struct {
	machines.Owner

	provider pulumi.ProviderResource
	files    map[string]*download.File
}

// Images downloads the boot image once to each Proxmox node in use, or once to a shared storage, after the resources in after.
//
// A machine boots the image only while its disk is empty, so the image is for machines that are created from now on. It is replaced for
// another minor release of Talos, whose maintenance mode may not understand the configurations of a later one, for other extensions, and
// for another kind of image. The earlier file stays on its storage, because Proxmox VE starts no machine whose drive has a file that is
// gone; the cluster's destruction removes it.
func (h Hypervisor) Images(
	ctx *pulumi.Context, owner machines.Owner, schematic pulumi.StringOutput, after []pulumi.Resource,
) (machines.Images, error) {
	i := images{Owner: owner, provider: h.Provider, files: map[string]*download.File{}}
	leftovers, err := leftoverImages(ctx, owner, schematic, after)
	if err != nil {
		return nil, err
	}
	after = append(slices.Clone(after), leftovers)
	all := hosts(owner.Cluster)
	if owner.Proxmox.Datastores.ISOShared {
		// The host only downloads the file. If the first machine moves, the file stays.
		image, err := i.download(ctx, owner.NameOf("iso"), all[0], schematic, after, "nodeName")
		for _, host := range all {
			i.files[host] = image
		}
		return i, err
	}
	for _, host := range all {
		if i.files[host], err = i.download(ctx, owner.NameOf(host, "iso"), host, schematic, after); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// child combines the options of a resource in Proxmox VE with its own.
func (i images) child(own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return i.Child(i.provider, component.ProxmoxPlugin(), pulumi.Composite(own...))
}

// imageKind is the kind of the boot image, as the image factory names it.
func imageKind(c *cluster.Cluster) string {
	if c.Talos.SecureBoot() {
		return "nocloud-amd64-secureboot"
	}
	return "nocloud-amd64"
}

// bootImage returns the boot image of a Proxmox node.
func bootImage(c *cluster.Cluster, host, schematic string) reclaim.Image {
	image := reclaim.Image{Host: host, Storage: c.Proxmox.Datastores.ISO}
	if c.Proxmox.Datastores.ISOShared {
		host = ""
	}
	image.File = reclaim.ImageFile(schematic, c.Talos.Version, c.Identity.Name, host, imageKind(c))
	return image
}

// download downloads the boot image to one Proxmox node. Changes of the inputs in keeps do not replace it.
func (i images) download(
	ctx *pulumi.Context, name, host string, schematic pulumi.StringOutput, after []pulumi.Resource, keeps ...string,
) (*download.File, error) {
	declared := i.Cluster
	stop, err := stopDownload(ctx, name, declared, host)
	if err != nil {
		return nil, err
	}
	replaced := schematic.ApplyT(func(id string) string {
		return strings.Join([]string{semver.MajorMinor(declared.Talos.Version), imageKind(declared), id}, " ")
	}).(pulumi.StringOutput)
	return download.NewFile(ctx, name, &download.FileArgs{
		ContentType: pulumi.String("iso"),
		DatastoreId: pulumi.String(declared.Proxmox.Datastores.ISO),
		NodeName:    pulumi.String(host),
		Url: schematic.ApplyT(func(id string) (string, error) {
			return url.JoinPath(declared.Talos.Factory, "image", id, declared.Talos.Version, imageKind(declared)+".iso")
		}).(pulumi.StringOutput),
		FileName: schematic.ApplyT(func(id string) string { return bootImage(declared, host, id).File }).(pulumi.StringOutput),
		// The content for a file name never changes. With true, every run would ask the factory for the size, and fail if the
		// factory does not answer.
		Overwrite: pulumi.Bool(false),
		// A run that is killed during the download leaves a file that may be incomplete.
		OverwriteUnmanaged: pulumi.Bool(true),
		UploadTimeout:      pulumi.Int(1800),
		Verify:             pulumi.Bool(true),
	}, i.child(
		// Pulumi replaces nothing where an earlier Slipway has stored no trigger, and until then it has not stored either that the file stays.
		pulumi.ReplacementTrigger(replaced),
		pulumi.IgnoreChanges(append([]string{"url", "fileName"}, keeps...)), // a replacement takes them as declared
		pulumi.RetainOnDelete(true),
		pulumi.DependsOn(after), stop,
	))
}

// stopDownload returns the hook that stops the download of an interrupted creation before an image is created.
func stopDownload(ctx *pulumi.Context, name string, declared *cluster.Cluster, host string) (pulumi.ResourceOption, error) {
	background, api := ctx.Context(), api(declared)
	stop, err := ctx.RegisterResourceHook(name+"-download", func(change *pulumi.ResourceHookArgs) error {
		left := bootImage(declared, host, "")
		left.File = component.Plain(change.NewInputs["fileName"]).StringValue() // known when the image is created
		return reclaim.StopDownload(background, api, left)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{stop}}), nil
}
