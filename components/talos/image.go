package talos

import (
	"fmt"
	"net/url"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"
	"sigs.k8s.io/yaml"
)

// imageSchematic registers the declared extensions with the image factory, which answers with an id for them.
func (b *builder) imageSchematic() (pulumi.StringOutput, error) {
	text, err := schematicYAML(b.args.Extensions)
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	schematic, err := imagefactory.NewSchematic(b.ctx, b.name+"-schematic", &imagefactory.SchematicArgs{
		Schematic: pulumi.String(text),
	}, b.child(b.args.TalosProvider))
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	return schematic.ID().ToStringOutput(), nil
}

// schematicYAML is the image factory's description of an image. Without extensions it is the empty schematic.
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

// bootImages downloads the boot image once to each Proxmox node in use, and returns them by Proxmox node.
//
// The image is what a machine starts from when its disk is empty, and nothing else: later versions come by Talos's own
// upgrade. So it stays as it is for the life of the host. A new one for every version would take the file away from under
// the CD drives of the running machines, or change the drives and with that reboot all machines at once.
//
// The file name carries schematic and version, so that a file of that name never needs to change, and the cluster, so
// that another cluster on the same hosts does not delete what this one boots from.
func (b *builder) bootImages() (map[string]*download.File, error) {
	version, cluster, factory, kind := b.args.TalosVersion, b.args.ClusterName, b.args.Factory, "nocloud-amd64"
	if b.args.secureBoot() {
		kind += "-secureboot"
	}
	images := map[string]*download.File{}
	for _, node := range b.args.all() {
		if images[node.Host] != nil {
			continue
		}
		file, err := download.NewFile(b.ctx, b.name+"-"+node.Host+"-iso", &download.FileArgs{
			ContentType: pulumi.String("iso"),
			DatastoreId: pulumi.String(b.args.ISODatastore),
			NodeName:    pulumi.String(node.Host),
			Url: b.schematic.ApplyT(func(id string) (string, error) {
				return url.JoinPath(factory, "image", id, version, kind+".iso")
			}).(pulumi.StringOutput),
			FileName: b.schematic.ApplyT(func(id string) string {
				return fmt.Sprintf("talos-%.12s-%s-%s-%s.iso", id, version, cluster, kind)
			}).(pulumi.StringOutput),
			// The content belongs to the name: asking the factory for its size on every run would only find it offline.
			Overwrite: pulumi.Bool(false),
			// A run that was killed while downloading leaves a file behind that may be cut short.
			OverwriteUnmanaged: pulumi.Bool(true),
			UploadTimeout:      pulumi.Int(1800),
			Verify:             pulumi.Bool(true),
		}, b.child(b.args.ProxmoxProvider, pulumi.IgnoreChanges([]string{"url", "fileName"})))
		if err != nil {
			return nil, err
		}
		images[node.Host] = file
	}
	return images, nil
}

// installer is the image that Talos installs itself from, with the same extensions as the boot image.
func (a TalosClusterArgs) installer(schematic string) (string, error) {
	factory, err := url.Parse(a.Factory)
	if err != nil {
		return "", err
	}
	kind := "nocloud-installer"
	if a.secureBoot() {
		kind += "-secureboot"
	}
	return fmt.Sprintf("%s/%s/%s:%s", factory.Host, kind, schematic, a.TalosVersion), nil
}
