package proxmox

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// images are the boot images.
type images struct {
	machines.Owner

	provider pulumi.ProviderResource
	files    map[image]*download.File
}

// image is a boot image on a Proxmox node.
type image struct {
	host string // Proxmox node
	kind string // as the image factory names it
}

// Images downloads the boot image once to each Proxmox node in use, or once to a shared storage, after the resources in after. While
// machines differ in whether they use SecureBoot, there are two kinds of image.
//
// A machine boots the image only while its disk is empty, so the image is for machines that are created from now on. It is replaced for
// another minor release of Talos, whose maintenance mode may not understand the configurations of a later one, for other extensions, and
// for another kind of image. The earlier file stays on its storage until the cluster is destroyed, because Proxmox VE starts no machine
// whose drive has a missing file.
func (h Hypervisor) Images(
	ctx *pulumi.Context, owner machines.Owner, schematic pulumi.StringOutput, after []pulumi.Resource,
) (machines.Images, error) {
	i := images{Owner: owner, provider: h.Provider, files: map[image]*download.File{}}
	leftovers, err := leftoverImages(ctx, owner, schematic, after)
	if err != nil {
		return nil, err
	}
	after = append(slices.Clone(after), leftovers)
	for _, image := range imagesOf(owner.Cluster) {
		if i.files[image], err = i.download(ctx, image, schematic, after); err != nil {
			return nil, err
		}
	}
	if owner.Proxmox.Datastores.ISOShared {
		for of, file := range maps.Clone(i.files) {
			for _, host := range hosts(owner.Cluster) {
				i.files[image{host, of.kind}] = file
			}
		}
	}
	return i, nil
}

// imagesOf returns the images that are downloaded: on a shared storage one of each kind, by the host of the first machine. Machines that
// are left out need none, and their host may be down.
func imagesOf(c *cluster.Cluster) []image {
	var all []image
	for _, node := range c.Serving(c.Machines()) {
		one := imageOf(node)
		if !slices.ContainsFunc(all, func(other image) bool {
			return other.kind == one.kind && (c.Proxmox.Datastores.ISOShared || other.host == one.host)
		}) {
			all = append(all, one)
		}
	}
	return all
}

// imageOf returns the image that a machine boots from.
func imageOf(node cluster.Machine) image { return image{node.Host, imageKind(node.DiskEncryption)} }

// nameOf returns the name of an image's resource. Only an image of another kind than the declared one's has its kind in the name.
func (i images) nameOf(image image) string {
	parts := []string{image.host, "iso"}
	if i.Proxmox.Datastores.ISOShared {
		parts = parts[1:]
	}
	if image.kind != imageKind(i.Talos.DiskEncryption) {
		parts = append(parts, image.kind)
	}
	return i.NameOf(parts...)
}

// child combines the options of a resource in Proxmox VE with its own.
func (i images) child(own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return i.Child(i.provider, component.ProxmoxPlugin(), pulumi.Composite(own...))
}

// imageKind is the kind of the boot image, as the image factory names it.
func imageKind(encryption cluster.DiskEncryption) string {
	if encryption.SecureBoot() {
		return "nocloud-amd64-secureboot"
	}
	return "nocloud-amd64"
}

// fileOf returns the file of a boot image. One of another kind than the declared one's has a name of its own: machines may have the file of
// an earlier image of that kind in their drives, which must not be downloaded again.
func fileOf(image image, c *cluster.Cluster, schematic string) reclaim.Image {
	file, host, kind := reclaim.Image{Host: image.host, Storage: c.Proxmox.Datastores.ISO}, image.host, image.kind
	if kind != imageKind(c.Talos.DiskEncryption) {
		kind += reclaim.OtherKind
	}
	if c.Proxmox.Datastores.ISOShared {
		host = ""
	}
	file.File = reclaim.ImageFile(schematic, c.Talos.Version, c.Identity.Name, host, kind)
	return file
}

// download downloads a boot image to its Proxmox node.
func (i images) download(
	ctx *pulumi.Context, image image, schematic pulumi.StringOutput, after []pulumi.Resource,
) (*download.File, error) {
	declared, name, ignored := i.Cluster, i.nameOf(image), []string{"url", "fileName"} // a replacement takes them as declared
	if declared.Proxmox.Datastores.ISOShared {
		ignored = append(ignored, "nodeName") // the host only downloads the file, which stays if the first machine moves
	}
	prepare, err := prepareDownload(ctx, name, declared, image)
	if err != nil {
		return nil, err
	}
	replaced := schematic.ApplyT(func(id string) string {
		return strings.Join([]string{semver.MajorMinor(declared.Talos.Version), image.kind, id}, " ")
	}).(pulumi.StringOutput)
	return download.NewFile(ctx, name, &download.FileArgs{
		ContentType: pulumi.String("iso"),
		DatastoreId: pulumi.String(declared.Proxmox.Datastores.ISO),
		NodeName:    pulumi.String(image.host),
		Url: schematic.ApplyT(func(id string) (string, error) {
			return url.JoinPath(declared.Talos.Factory, "image", id, declared.Talos.Version, image.kind+".iso")
		}).(pulumi.StringOutput),
		FileName: schematic.ApplyT(func(id string) string { return fileOf(image, declared, id).File }).(pulumi.StringOutput),
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
		pulumi.IgnoreChanges(ignored),
		pulumi.RetainOnDelete(true),
		pulumi.DependsOn(after), prepare,
	))
}

// prepareDownload returns the hook that, before an image is created, waits until the factory has built it, and makes room for the file.
func prepareDownload(ctx *pulumi.Context, name string, declared *cluster.Cluster, image image) (pulumi.ResourceOption, error) {
	background, api := ctx.Context(), api(declared)
	say := func(line string) { _ = ctx.Log.Info(line, nil) }
	factory := built{limit: 20 * time.Minute, every: 5 * time.Second, quiet: 10 * time.Second, cut: 10 * time.Second, say: say}
	hook, err := ctx.RegisterResourceHook(name+"-download", func(change *pulumi.ResourceHookArgs) error {
		left := fileOf(image, declared, "")
		left.File = component.Plain(change.NewInputs["fileName"]).StringValue() // known when the image is created
		factory.await(background, component.Plain(change.NewInputs["url"]).StringValue())
		return reclaim.MakeRoom(background, api, left)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}
