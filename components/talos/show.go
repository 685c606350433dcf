package talos

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// typeMachineConfiguration is part of the state: a rename needs Aliases.
const typeMachineConfiguration = "slipway:talos:MachineConfiguration"

// show registers a node's machine configuration to look at: a component without children, whose input is the
// configuration, a line to each value. A preview with --diff shows the lines that change.
//
// What the node gets is secret as a whole and shows nothing. What is shown is made from the arguments alone, so that it is
// complete in a preview without a cluster, and no machine secret can be in it. What may be a secret of the user's is one in
// the state and "[secret]" to the eye; the engine tells whether it changed. Of inline manifests it has the checksum.
func (b *builder) show(node Node) error {
	tree, err := machineconfig.Effective(b.args.cluster(), node.config())
	if err != nil {
		return err
	}
	text, hidden := machineconfig.Lines(tree)
	secrets := pulumi.StringMap{}
	for path, value := range hidden {
		secrets[path] = pulumi.ToSecret(pulumi.String(value).ToStringOutput()).(pulumi.StringOutput)
	}
	if node.Role == machineconfig.ControlPlane {
		for _, manifest := range b.args.InlineManifests {
			secrets["cluster.inlineManifests."+manifest.Name] = checksum(manifest)
		}
	}
	var shown pulumi.ResourceState
	err = b.ctx.RegisterComponentResourceV2(typeMachineConfiguration, b.name+"-"+node.Name+"-configuration", pulumi.Map{
		"configuration": pulumi.String(text),
		"extensions":    pulumi.ToStringArray(b.args.Extensions),
		"secrets":       secrets,
	}, &shown, pulumi.Parent(b.parent), pulumi.DependsOn(b.args.DependsOn)) // what is refused to the node is not shown as its own
	if err != nil {
		return err
	}
	return b.ctx.RegisterResourceOutputs(&shown, pulumi.Map{})
}

// checksum is that of an inline manifest; secret, as what it is made of.
func checksum(manifest InlineManifest) pulumi.StringOutput {
	return secret(manifest).ApplyT(func(contents string) string {
		sum := sha256.Sum256([]byte(contents))
		return hex.EncodeToString(sum[:])
	}).(pulumi.StringOutput)
}
