package talos

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
)

// typeMachineConfiguration is part of the state: a rename needs Aliases.
const typeMachineConfiguration = "slipway:talos:MachineConfiguration"

// show registers a node's machine configuration for display, after the resource in placed: a component without children, whose input is the
// configuration, one line per value. A preview with --diff shows the lines that change.
//
// The node's configuration is secret as a whole, so a preview shows nothing of it. The configuration for display is rendered from the
// arguments alone: it is complete in a preview without a cluster, and cannot contain a machine secret. Values that may be the user's
// secrets are secret in the state and displayed as "[secret]"; the engine reports whether they changed. Inline manifests are represented by
// their checksums.
func (r *registrar) show(ctx *pulumi.Context, node cluster.Machine, placed pulumi.Resource) error {
	tree, err := machineconfig.Effective(r.Cluster, node)
	if err != nil {
		return err
	}
	text, hidden := machineconfig.Lines(tree)
	secrets := pulumi.StringMap{}
	for path, value := range hidden {
		secrets[path] = pulumi.ToSecret(pulumi.String(value).ToStringOutput()).(pulumi.StringOutput)
	}
	if node.Role == cluster.ControlPlane {
		for _, manifest := range r.args.InlineManifests {
			secrets["cluster.inlineManifests."+manifest.Name] = checksum(manifest)
		}
	}
	var shown pulumi.ResourceState
	err = ctx.RegisterComponentResourceV2(typeMachineConfiguration, r.NameOf(node.Name, "configuration"), pulumi.Map{
		"configuration": pulumi.String(text),
		"extensions":    pulumi.ToStringArray(r.Talos.Extensions),
		"secrets":       secrets,
	}, &shown, pulumi.Parent(r.Component),
		// A change that these refuse is not shown.
		pulumi.DependsOn(r.args.DependsOn), pulumi.DependsOn([]pulumi.Resource{placed}))
	if err != nil {
		return err
	}
	return ctx.RegisterResourceOutputs(&shown, pulumi.Map{})
}

// checksum returns the SHA-256 checksum of an inline manifest. It is secret, because the manifest is.
func checksum(manifest InlineManifest) pulumi.StringOutput {
	return secret(manifest).ApplyT(func(contents string) string {
		sum := sha256.Sum256([]byte(contents))
		return hex.EncodeToString(sum[:])
	}).(pulumi.StringOutput)
}
