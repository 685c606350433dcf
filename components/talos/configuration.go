package talos

import (
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/client"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/components/talos/machineconfig"
)

// secrets are the cluster's certificate authorities and keys, made once. The version is what they were first made for: a
// change of it would make all of them anew, and lock everybody out.
func (b *builder) secrets() (*machine.Secrets, error) {
	return machine.NewSecrets(b.ctx, b.name+"-secrets", &machine.SecretsArgs{
		TalosVersion: pulumi.String(b.args.TalosVersion),
	}, b.child(b.args.TalosProvider,
		pulumi.Protect(true),
		pulumi.IgnoreChanges([]string{"talosVersion"}),
		pulumi.AdditionalSecretOutputs([]string{"machineSecrets", "clientConfiguration"})))
}

func clientConfiguration(secrets *machine.Secrets) machine.ClientConfigurationOutput {
	return pulumi.ToSecret(secrets.ClientConfiguration).(machine.ClientConfigurationOutput)
}

// configuration is a node's whole machine configuration; secret, and never an output. All patches go into the
// generation, which leaves nothing in the state: what users patch in, such as registry credentials, may be secret too.
func (b *builder) configuration(node Node, secrets *machine.Secrets, schematic pulumi.StringOutput) pulumi.StringOutput {
	args := b.args
	patches := schematic.ApplyT(func(id string) ([]string, error) {
		rendered, err := machineconfig.Render(args.cluster(), node.config())
		if err != nil {
			return nil, err
		}
		image, err := args.installer(id)
		if err != nil {
			return nil, err
		}
		installer, err := machineconfig.InstallerImage(image)
		if err != nil {
			return nil, err
		}
		// Before the user's patches, so that they have the last word.
		return append([]string{rendered[0], installer}, rendered[1:]...), nil
	}).(pulumi.StringArrayOutput)

	result := machine.GetConfigurationOutput(b.ctx, machine.GetConfigurationOutputArgs{
		ClusterName:       pulumi.String(args.ClusterName),
		ClusterEndpoint:   pulumi.String(args.cluster().Endpoint()),
		MachineType:       pulumi.String(string(node.Role)),
		MachineSecrets:    pulumi.ToSecret(secrets.MachineSecrets).(machine.MachineSecretsOutput),
		TalosVersion:      pulumi.String(args.TalosVersion),
		KubernetesVersion: pulumi.String(args.KubernetesVersion),
		ConfigPatches:     patches,
		Docs:              pulumi.Bool(false),
		Examples:          pulumi.Bool(false),
	}, pulumi.Parent(b.parent), pulumi.Provider(args.TalosProvider))
	return pulumi.ToSecret(result.MachineConfiguration()).(pulumi.StringOutput)
}

// apply gives a node its configuration: in maintenance mode the first time, by mutual TLS ever after. Talos decides
// whether a change needs a reboot. A machine that is made anew comes up in maintenance mode, so it is given it again.
func (b *builder) apply(node Node, vm *vm.VirtualMachine, configuration pulumi.StringOutput, client machine.ClientConfigurationOutput) (*machine.ConfigurationApply, error) {
	address := pulumi.String(node.Address.String())
	return machine.NewConfigurationApply(b.ctx, b.name+"-"+node.Name+"-apply", &machine.ConfigurationApplyArgs{
		ApplyMode:                 pulumi.String("auto"),
		ClientConfiguration:       client,
		Endpoint:                  address,
		Node:                      address,
		MachineConfigurationInput: configuration,
	}, b.child(b.args.TalosProvider,
		pulumi.DependsOn([]pulumi.Resource{vm}),
		pulumi.ReplaceWith([]pulumi.Resource{vm}),
		pulumi.AdditionalSecretOutputs([]string{"machineConfiguration", "machineConfigurationInput", "clientConfiguration"})))
}

// talosconfig is what talosctl needs: the control planes to talk to, and all nodes to talk about.
func (b *builder) talosconfig(credentials machine.ClientConfigurationOutput) pulumi.StringOutput {
	result := client.GetConfigurationOutput(b.ctx, client.GetConfigurationOutputArgs{
		ClusterName: pulumi.String(b.args.ClusterName),
		ClientConfiguration: client.GetConfigurationClientConfigurationArgs{
			CaCertificate:     credentials.CaCertificate(),
			ClientCertificate: credentials.ClientCertificate(),
			ClientKey:         credentials.ClientKey(),
		},
		Endpoints: pulumi.ToStringArray(addresses(b.args.controlPlanes())),
		Nodes:     pulumi.ToStringArray(addresses(b.args.Nodes)),
	}, pulumi.Parent(b.parent), pulumi.Provider(b.args.TalosProvider))
	return pulumi.ToSecret(result.TalosConfig()).(pulumi.StringOutput)
}
