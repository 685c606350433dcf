package talos

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/internal/machines"
)

// configurer applies machine configurations.
type configurer struct {
	*registrar

	secrets   machine.MachineSecretsOutput      // with the CAs of the declared generations
	client    machine.ClientConfigurationOutput // credentials of Talos's API
	schematic pulumi.StringOutput               // id of the image that Talos is installed from
	turns     *turns                            // of the nodes that this run changes
	upgraded  pulumi.Resource                   // brings the nodes to the declared versions; nil for nodes that join again before
}

// node is a machine with its configuration.
type node struct {
	machines.Machine

	apply pulumi.Resource     // applies the configuration
	sum   pulumi.StringOutput // checksum of the machine and of its configuration
}

// appliesOf returns the resources that apply the configurations of nodes.
func appliesOf(nodes []node) []pulumi.Resource {
	var applies []pulumi.Resource
	for _, node := range nodes {
		applies = append(applies, node.apply)
	}
	return applies
}

// configure applies the configurations of machines. Control planes get theirs one after the other: a configuration that one control plane
// refuses, or that breaks it, does not reach the next.
func (c configurer) configure(ctx *pulumi.Context, made []machines.Machine) ([]node, error) {
	configurations, err := c.configurations(ctx, made)
	if err != nil {
		return nil, err
	}
	var nodes []node
	var former []pulumi.Resource // of the control plane before
	for i, machine := range made {
		configuration := configurations[i]
		var after []pulumi.Resource
		if machine.Node.Role == cluster.ControlPlane {
			after = former
		}
		apply, err := c.apply(ctx, machine, configuration, after)
		if err != nil {
			return nil, err
		}
		if machine.Node.Role == cluster.ControlPlane {
			former = []pulumi.Resource{apply}
		}
		nodes = append(nodes, node{machine, apply, sumOf(machine, configuration)})
	}
	return nodes, nil
}

// configurations returns the whole machine configurations of machines; secret. None of them is known before the certificates, keys and
// tokens of all have been parsed: Talos would accept any text for most of them, install itself, and never start its API.
func (c configurer) configurations(ctx *pulumi.Context, made []machines.Machine) ([]pulumi.StringOutput, error) {
	var all pulumi.StringArray
	for _, machine := range made {
		configuration, err := c.configuration(ctx, machine.Node)
		if err != nil {
			return nil, err
		}
		all = append(all, configuration)
	}
	checked := all.ToStringArrayOutput().ApplyT(func(texts []string) ([]string, error) {
		remarks, err := checkCredentials(made, texts)
		for _, remark := range remarks {
			_ = ctx.Log.Warn(remark, &pulumi.LogArgs{Resource: c.Component}) // the run goes on without it
		}
		return texts, err
	}).(pulumi.StringArrayOutput)
	var configurations []pulumi.StringOutput
	for i := range made {
		configurations = append(configurations, checked.Index(pulumi.Int(i)))
	}
	return configurations, nil
}

// checkCredentials parses the credentials in the configurations of machines. What several machines have is said once.
func checkCredentials(of []machines.Machine, texts []string) (remarks []string, err error) {
	var problems []error
	said := map[string]bool{}
	for i, text := range texts {
		expired, wrong := machineconfig.CheckCredentials(text, time.Now())
		for _, remark := range expired {
			remark += "; nothing that it has signed is valid any more"
			if !said[remark] {
				remarks, said[remark] = append(remarks, remark), true
			}
		}
		if wrong != nil && !said[wrong.Error()] {
			said[wrong.Error()] = true
			problems = append(problems, fmt.Errorf("the machine configuration of %s is not applied, nor is any other: %w", of[i].Node.Name, wrong))
		}
	}
	return remarks, errors.Join(problems...)
}

// configuration returns a node's whole machine configuration; secret, and never an output. All patches are arguments of the
// call that generates the configuration. A call stores nothing in the state: users' patches may hold secrets, such as registry credentials.
func (c configurer) configuration(ctx *pulumi.Context, node cluster.Machine) (pulumi.StringOutput, error) {
	rendered, err := machineconfig.Render(c.Cluster, node)
	if err != nil {
		return pulumi.StringOutput{}, err
	}
	// The user's patches come last, so that they override all others.
	installer := c.schematic.ApplyT(func(id string) (string, error) {
		image, err := installerImage(c.Talos, node, id)
		if err != nil {
			return "", err
		}
		return machineconfig.InstallerImage(image)
	}).(pulumi.StringOutput)
	patches := pulumi.StringArray{pulumi.String(rendered[0]), installer}
	if node.Role == cluster.ControlPlane {
		patches = append(patches, c.manifests()...)
	}
	for _, patch := range rendered[1:] { // some of the user's patches are secret
		patches = append(patches, pulumi.ToSecret(pulumi.String(patch)).(pulumi.StringOutput))
	}

	result := machine.GetConfigurationOutput(ctx, machine.GetConfigurationOutputArgs{
		ClusterName:       pulumi.String(c.Identity.Name),
		ClusterEndpoint:   pulumi.String(c.Network.Endpoint()),
		MachineType:       pulumi.String(string(node.Role)),
		MachineSecrets:    pulumi.ToSecret(c.secrets).(machine.MachineSecretsOutput),
		TalosVersion:      pulumi.String(string(c.Talos.Contract)),
		KubernetesVersion: pulumi.String(c.Kubernetes.Version),
		ConfigPatches:     patches,
		Docs:              pulumi.Bool(false),
		Examples:          pulumi.Bool(false),
	}, pulumi.Parent(c.Component), pulumi.Provider(c.args.TalosProvider))
	return pulumi.ToSecret(result.MachineConfiguration()).(pulumi.StringOutput), nil
}

// manifests returns one patch for each inline manifest; secret.
func (r *registrar) manifests() pulumi.StringArray {
	var patches pulumi.StringArray
	for _, manifest := range r.args.InlineManifests {
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

// apply registers the resource that applies a machine's configuration, after the upgrade and the resources in after. The first time, it is
// applied in maintenance mode, once the machine answers, later by mutual TLS. Talos before 1.14 decides whether a change needs a reboot;
// see configures for later ones. A replaced machine starts in maintenance mode, so the resource is replaced with it.
func (c configurer) apply(
	ctx *pulumi.Context, of machines.Machine, configuration pulumi.StringOutput, after []pulumi.Resource,
) (*machine.ConfigurationApply, error) {
	name, address := c.NameOf(of.Node.Name, "apply"), pulumi.String(of.Node.Address.String())
	if c.upgraded != nil {
		after = append(slices.Clone(after), c.upgraded)
	}
	changes, err := c.applyHooks(ctx, name, of)
	if err != nil {
		return nil, err
	}
	apply, err := machine.NewConfigurationApply(ctx, name, &machine.ConfigurationApplyArgs{
		ApplyMode:                 pulumi.String("auto"),
		ClientConfiguration:       c.client,
		Endpoint:                  address,
		Node:                      address,
		MachineConfigurationInput: configuration,
	}, c.Child(c.args.TalosProvider,
		pulumi.DependsOn(slices.Concat([]pulumi.Resource{of.Resource}, after, c.args.DependsOn)),
		replacedWith(ctx, of),
		pulumi.AdditionalSecretOutputs([]string{"machineConfiguration", "machineConfigurationInput", "clientConfiguration"}),
		changes))
	if err == nil && !ctx.DryRun() {
		c.turns.giveAgain(ctx, of.Node, apply, configuration)
	}
	return apply, err
}

// applyHooks returns the option with which a configuration is first applied once the machine answers, and later in the node's turn; with
// which it stays as it is, if the node is left out. With it, the first configuration of a node that joins again ends once the node is back.
func (c configurer) applyHooks(ctx *pulumi.Context, name string, of machines.Machine) (pulumi.ResourceOption, error) {
	if c.Lifecycle.Skip.Has(of.Node.Name) {
		return c.StaysAsIs(ctx, name, of.Node, "*")
	}
	first, err := c.awaitFirst(ctx, name, of)
	if err != nil {
		return nil, err
	}
	turn, err := c.turns.configurationHooks(ctx, name, of.Node)
	if err != nil {
		return nil, err
	}
	turn.BeforeCreate = []*pulumi.ResourceHook{first}
	if c.upgraded == nil {
		turn.AfterCreate, err = c.turns.rejoinHooks(ctx, name, of.Node)
	}
	return pulumi.ResourceHooks(turn), err
}

// replacedWith replaces a resource when its machine was replaced, or was lost and is created again. The engine
// replaces nothing with a resource that a refresh has removed from the state. A preview does not know the machine before it exists.
func replacedWith(ctx *pulumi.Context, of machines.Machine) pulumi.ResourceOption {
	replaced := pulumi.ReplaceWith([]pulumi.Resource{of.Resource})
	if ctx.DryRun() {
		return replaced
	}
	return pulumi.Composite(replaced, pulumi.ReplacementTrigger(of.Incarnation))
}
