package talos

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// imageSchematic registers the declared extensions with the image factory, after the resources in after, and returns the id of the
// schematic.
func (r *registrar) imageSchematic(ctx *pulumi.Context, after []pulumi.Resource) (pulumi.StringOutput, error) {
	text, err := schematicYAML(r.Talos.Extensions)
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	schematic, err := imagefactory.NewSchematic(ctx, r.NameOf("schematic"), &imagefactory.SchematicArgs{
		Schematic: pulumi.String(text),
	}, r.Child(r.args.TalosProvider, pulumi.DependsOn(after),
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

// installers returns the images that Talos is installed and upgraded from, by the names of the machines that are not left out.
func (r *registrar) installers(schematic string) (map[string]string, error) {
	images := map[string]string{}
	for _, node := range r.Serving(r.Machines()) {
		image, err := installerImage(r.Talos, node, schematic)
		if err != nil {
			return nil, err
		}
		images[node.Name] = image
	}
	return images, nil
}

// onlyInstaller returns the one image that Talos is upgraded from; "" if machines need different ones.
func (r *registrar) onlyInstaller(schematic pulumi.StringOutput) pulumi.StringOutput {
	return schematic.ApplyT(func(id string) (string, error) {
		images, err := r.installers(id)
		all := slices.Compact(slices.Sorted(maps.Values(images)))
		if err != nil || len(all) != 1 {
			return "", err
		}
		return all[0], nil
	}).(pulumi.StringOutput)
}

// installerImage returns the image that Talos installs itself from on a machine. It has the same extensions as the boot image.
func installerImage(talos cluster.Talos, node cluster.Machine, schematic string) (string, error) {
	factory, err := url.Parse(talos.Factory)
	if err != nil {
		return "", err
	}
	kind := "nocloud-installer"
	if node.DiskEncryption.SecureBoot() {
		kind += "-secureboot"
	}
	return fmt.Sprintf("%s/%s/%s:%s", factory.Host, kind, schematic, talos.Version), nil
}
