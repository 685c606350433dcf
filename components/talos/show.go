package talos

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/machineconfig"
)

// typeMachineConfiguration is part of the state: a rename needs Aliases.
const typeMachineConfiguration = "slipway:talos:MachineConfiguration"

// show registers a node's machine configuration to look at: a component without children, whose inputs are the
// configuration, document by document. A preview with --diff names each value that changes.
//
// What the node gets is secret as a whole and shows nothing. What is shown is made from the arguments alone, so that it is
// complete in a preview without a cluster, and no machine secret can be in it. What may be a secret of the user's is one in
// the state and "[secret]" to the eye; the engine knows whether it changed. Of inline manifests there is the checksum.
func (b *builder) show(node Node) error {
	tree, err := machineconfig.Effective(b.args.cluster(), node.config())
	if err != nil {
		return err
	}
	props := input(tree).(pulumi.Map)
	props["extensions"] = pulumi.ToStringArray(b.args.Extensions)
	if manifests := b.checksums(); node.Role == machineconfig.ControlPlane && len(manifests) > 0 {
		props["inlineManifests"] = manifests
	}
	var shown pulumi.ResourceState
	if err := b.ctx.RegisterComponentResourceV2(typeMachineConfiguration, b.name+"-"+node.Name+"-configuration", props, &shown, pulumi.Parent(b.parent)); err != nil {
		return err
	}
	return b.ctx.RegisterResourceOutputs(&shown, pulumi.Map{})
}

// checksums are those of the inline manifests, by name; secret, as what they are made of.
func (b *builder) checksums() pulumi.Map {
	sums := pulumi.Map{}
	for _, manifest := range b.args.InlineManifests {
		sums[manifest.Name] = secret(manifest).ApplyT(func(contents string) string {
			sum := sha256.Sum256([]byte(contents))
			return hex.EncodeToString(sum[:])
		}).(pulumi.StringOutput)
	}
	return sums
}

// input turns a tree of plain values into one of inputs.
func input(value any) pulumi.Input {
	switch value := value.(type) {
	case map[string]any:
		inputs := pulumi.Map{}
		for key, child := range value {
			if child := input(child); child != nil {
				inputs[key] = child
			}
		}
		return inputs
	case []any:
		inputs := pulumi.Array{}
		for _, child := range value {
			inputs = append(inputs, input(child))
		}
		return inputs
	case machineconfig.Secret:
		return pulumi.ToSecret(pulumi.String(value).ToStringOutput()).(pulumi.StringOutput)
	case string:
		return pulumi.String(value)
	case bool:
		return pulumi.Bool(value)
	case int:
		return pulumi.Int(value)
	case float64:
		return pulumi.Float64(value)
	case nil:
		return nil
	}
	return pulumi.String(fmt.Sprint(value))
}
