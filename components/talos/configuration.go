package talos

import (
	"slices"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/client"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
)

// machineSecrets creates the cluster's certificate authorities and keys, once. Changes of the Talos version are ignored: they
// would replace all of them, and no client or node could authenticate any more.
func (b *builder) machineSecrets() (*machine.Secrets, error) {
	checks, err := b.newClusterHooks()
	if err != nil {
		return nil, err
	}
	return b.newSecrets(b.name+"-secrets", checks)
}

func (b *builder) newSecrets(name string, own ...pulumi.ResourceOption) (*machine.Secrets, error) {
	return machine.NewSecrets(b.ctx, name, &machine.SecretsArgs{
		TalosVersion: pulumi.String(b.Talos.Version),
	}, b.child(b.args.TalosProvider, append([]pulumi.ResourceOption{
		pulumi.Protect(true),
		pulumi.IgnoreChanges([]string{"talosVersion"}),
		pulumi.AdditionalSecretOutputs([]string{"machineSecrets", "clientConfiguration"}),
	}, own...)...))
}

func clientConfiguration(secrets *machine.Secrets) machine.ClientConfigurationOutput {
	return pulumi.ToSecret(secrets.ClientConfiguration).(machine.ClientConfigurationOutput)
}

// configuration returns a node's whole machine configuration; secret, and never an output. All patches are arguments of the
// call that generates it, because a call stores nothing in the state: users' patches may hold secrets, such as registry
// credentials.
func (b *builder) configuration(node cluster.Machine) (pulumi.StringOutput, error) {
	rendered, err := machineconfig.Render(b.Cluster, node)
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	// The user's patches come last, so that they override all others.
	patches := pulumi.StringArray{pulumi.String(rendered[0]), b.installer()}
	if node.Role == cluster.ControlPlane {
		patches = append(patches, b.manifests()...)
	}
	for _, patch := range rendered[1:] { // some of the user's patches are secret
		patches = append(patches, pulumi.ToSecret(pulumi.String(patch)).(pulumi.StringOutput))
	}

	result := machine.GetConfigurationOutput(b.ctx, machine.GetConfigurationOutputArgs{
		ClusterName:       pulumi.String(b.Identity.Name),
		ClusterEndpoint:   pulumi.String(b.Network.Endpoint()),
		MachineType:       pulumi.String(string(node.Role)),
		MachineSecrets:    pulumi.ToSecret(b.currentSecrets()).(machine.MachineSecretsOutput),
		TalosVersion:      pulumi.String(b.Talos.Version),
		KubernetesVersion: pulumi.String(b.Kubernetes.Version),
		ConfigPatches:     patches,
		Docs:              pulumi.Bool(false),
		Examples:          pulumi.Bool(false),
	}, pulumi.Parent(b.parent), pulumi.Provider(b.args.TalosProvider))
	return pulumi.ToSecret(result.MachineConfiguration()).(pulumi.StringOutput), nil
}

// installer returns the patch that sets the installer image.
func (b *builder) installer() pulumi.StringInput {
	return b.installerImage().ApplyT(machineconfig.InstallerImage).(pulumi.StringOutput)
}

// installerImage returns the image that Talos is installed from.
func (b *builder) installerImage() pulumi.StringOutput {
	return b.schematic.ApplyT(func(id string) (string, error) { return installerImage(b.Talos, id) }).(pulumi.StringOutput)
}

// manifests returns one patch for each inline manifest; secret.
func (b *builder) manifests() pulumi.StringArray {
	var patches pulumi.StringArray
	for _, manifest := range b.args.InlineManifests {
		patches = append(patches, secret(manifest).ApplyT(func(contents string) (string, error) {
			return machineconfig.InlineManifest(manifest.Name, contents)
		}).(pulumi.StringOutput))
	}
	return patches
}

// secret returns the text of a manifest, as a secret.
func secret(manifest InlineManifest) pulumi.StringOutput {
	return pulumi.ToSecret(manifest.Contents.ToStringOutput()).(pulumi.StringOutput)
}

// apply registers the resource that applies a node's configuration, after the upgrade and the resources in before. The first time, it is
// applied in maintenance mode, later by mutual TLS. Talos decides whether a change needs a reboot. A replaced machine starts in
// maintenance mode, so the resource is replaced with it.
func (b *builder) apply(
	node cluster.Machine, vm *vm.VirtualMachine, configuration pulumi.StringOutput, before ...pulumi.Resource,
) (*machine.ConfigurationApply, error) {
	address := pulumi.String(node.Address.String())
	turn, err := b.configurationHooks(node)
	if err != nil {
		return nil, err
	}
	return machine.NewConfigurationApply(b.ctx, b.name+"-"+node.Name+"-apply", &machine.ConfigurationApplyArgs{
		ApplyMode:                 pulumi.String("auto"),
		ClientConfiguration:       b.client,
		Endpoint:                  address,
		Node:                      address,
		MachineConfigurationInput: configuration,
	}, b.child(b.args.TalosProvider,
		pulumi.DependsOn(slices.Concat([]pulumi.Resource{vm, b.upgraded}, before, b.args.DependsOn)),
		b.afterEachVM(vm),
		pulumi.AdditionalSecretOutputs([]string{"machineConfiguration", "machineConfigurationInput", "clientConfiguration"}),
		turn))
}

// talosconfig returns talosctl's configuration: the control planes as endpoints, all machines as nodes.
func (b *builder) talosconfig(credentials machine.ClientConfigurationOutput) pulumi.StringOutput {
	result := client.GetConfigurationOutput(b.ctx, client.GetConfigurationOutputArgs{
		ClusterName: pulumi.String(b.Identity.Name),
		ClientConfiguration: client.GetConfigurationClientConfigurationArgs{
			CaCertificate:     credentials.CaCertificate(),
			ClientCertificate: credentials.ClientCertificate(),
			ClientKey:         credentials.ClientKey(),
		},
		Endpoints: pulumi.ToStringArray(addresses(b.ControlPlanes())),
		Nodes:     pulumi.ToStringArray(addresses(b.Machines())),
	}, pulumi.Parent(b.parent), pulumi.Provider(b.args.TalosProvider))
	return pulumi.ToSecret(result.TalosConfig()).(pulumi.StringOutput)
}
