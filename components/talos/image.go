package talos

import (
	"fmt"
	"net/url"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
)

// imageSchematic registers the declared extensions with the image factory, after the resources in after, and returns the id of the
// schematic.
func (b *builder) imageSchematic(after []pulumi.Resource) (pulumi.StringOutput, error) {
	text, err := schematicYAML(b.Talos.Extensions)
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	schematic, err := imagefactory.NewSchematic(b.ctx, b.name+"-schematic", &imagefactory.SchematicArgs{
		Schematic: pulumi.String(text),
	}, b.child(b.args.TalosProvider, pulumi.DependsOn(after),
		// The factory gives each schematic an id of its own, and Pulumi keeps the id of a resource that is updated.
		pulumi.ReplaceOnChanges([]string{"schematic"})))
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	return schematic.ID().ToStringOutput(), nil
}

// schematicYAML returns the image factory's schematic, as YAML. Without extensions it is the empty schematic.
func schematicYAML(extensions []string) (string, error) {
	type systemExtensions struct {
		OfficialExtensions []string `json:"officialExtensions,omitempty"`
	}
	type customization struct {
		SystemExtensions systemExtensions `json:"systemExtensions"`
	}
	text, err := yaml.Marshal(struct {
		Customization customization `json:"customization"`
	}{customization{systemExtensions{extensions}}})
	return string(text), err
}

// bootImages downloads the boot image once to each Proxmox node in use, or once to a shared storage, after the resources in after. It
// returns the images by Proxmox node.
//
// A machine boots the image only while its disk is empty. Later versions are installed by Talos's own upgrade, so the image
// never changes. A new image for every version would delete the file that the CD drives of the running machines use.
func (b *builder) bootImages(after []pulumi.Resource) (map[string]*download.File, error) {
	images := map[string]*download.File{}
	if b.Proxmox.Datastores.ISOShared {
		// The host only downloads the file. If the first machine moves, the file stays.
		image, err := b.bootImage(b.name+"-iso", b.imageOf(b.hosts()[0]), after, "nodeName")
		for _, host := range b.hosts() {
			images[host] = image
		}
		return images, err
	}
	for _, host := range b.hosts() {
		image, err := b.bootImage(b.name+"-"+host+"-iso", b.imageOf(host), after)
		if err != nil {
			return nil, err
		}
		images[host] = image
	}
	return images, nil
}

// imageKind is the kind of the boot image, as the image factory names it.
func (b *builder) imageKind() string {
	if b.Talos.SecureBoot() {
		return "nocloud-amd64-secureboot"
	}
	return "nocloud-amd64"
}

// imageOf returns the boot image of a Proxmox node; its file name follows from the schematic's id.
//
// The file name contains schematic and version, so that a file of that name never needs to change. Its owner is the cluster, so
// that another cluster on the same hosts does not delete this one's image, and on a local storage the Proxmox node: the provider puts
// the image into the CD drive of a VM that has moved only if its name is another one.
func (b *builder) imageOf(host string) func(schematic string) reclaim.Image {
	owner := b.Identity.Name
	if !b.Proxmox.Datastores.ISOShared {
		owner += "-" + host
	}
	return func(schematic string) reclaim.Image {
		return reclaim.Image{
			Host: host, Storage: b.Proxmox.Datastores.ISO,
			File: fmt.Sprintf("talos-%.12s-%s-%s-%s.iso", schematic, b.Talos.Version, owner, b.imageKind()),
		}
	}
}

// bootImage downloads the boot image to one Proxmox node.
func (b *builder) bootImage(
	resource string, image func(schematic string) reclaim.Image, after []pulumi.Resource, keeps ...string,
) (*download.File, error) {
	version, factory, kind := b.Talos.Version, b.Talos.Factory, b.imageKind()
	hooks, err := b.imageHooks(resource, image(""))
	if err != nil {
		return nil, err
	}
	return download.NewFile(b.ctx, resource, &download.FileArgs{
		ContentType: pulumi.String("iso"),
		DatastoreId: pulumi.String(b.Proxmox.Datastores.ISO),
		NodeName:    pulumi.String(image("").Host),
		Url: b.schematic.ApplyT(func(id string) (string, error) {
			return url.JoinPath(factory, "image", id, version, kind+".iso")
		}).(pulumi.StringOutput),
		FileName: b.schematic.ApplyT(func(id string) string { return image(id).File }).(pulumi.StringOutput),
		// The content for a file name never changes. With true, every run would ask the factory for the size, and fail if the
		// factory does not answer.
		Overwrite: pulumi.Bool(false),
		// A run that is killed during the download leaves a file that may be incomplete.
		OverwriteUnmanaged: pulumi.Bool(true),
		UploadTimeout:      pulumi.Int(1800),
		Verify:             pulumi.Bool(true),
	}, b.proxmox(pulumi.IgnoreChanges(append([]string{"url", "fileName"}, keeps...)), pulumi.DependsOn(after), hooks))
}

// installerImage returns the image that Talos installs itself from. It has the same extensions as the boot image.
func installerImage(talos cluster.Talos, schematic string) (string, error) {
	factory, err := url.Parse(talos.Factory)
	if err != nil {
		return "", err
	}
	kind := "nocloud-installer"
	if talos.SecureBoot() {
		kind += "-secureboot"
	}
	return fmt.Sprintf("%s/%s/%s:%s", factory.Host, kind, schematic, talos.Version), nil
}
