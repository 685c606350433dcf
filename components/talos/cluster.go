// Package talos brings up Talos Linux Kubernetes clusters on Proxmox VE.
package talos

import (
	"maps"
	"slices"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	taloscluster "github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/nodes/rotate"
)

// typeTalosCluster is part of the state: a rename needs Aliases.
const typeTalosCluster = "slipway:talos:TalosCluster"

// TalosCluster is a cluster whose Kubernetes API answers. It has no CNI: its nodes stay NotReady until one is installed.
type TalosCluster struct {
	pulumi.ResourceState

	Kubeconfig  pulumi.StringOutput `pulumi:"kubeconfig"`  // cluster-admin kubeconfig for APIEndpoint, YAML; secret
	Talosconfig pulumi.StringOutput `pulumi:"talosconfig"` // admin talosconfig, all control planes as endpoints, all nodes; secret
	APIEndpoint pulumi.StringOutput `pulumi:"apiEndpoint"` // https URL of the Kubernetes API, at the VIP

	installer pulumi.StringOutput
	secrets   machine.MachineSecretsOutput
	builder   *builder
	bootstrap pulumi.Resource
	applies   []pulumi.Resource
	vms       pulumi.StringMap
	leaves    []pulumi.Resource
}

// NewTalosCluster creates VMs, boots Talos's image on them, configures them and bootstraps etcd on the first control plane.
//
// It checks everything before it registers anything. Talos's own machinery checks the machine configurations. Machine
// secrets and control-plane VMs are protected: to destroy the cluster, unprotect them first (pulumi state unprotect --all).
// The providers come from the arguments. Providers in the options are ignored.
func NewTalosCluster(ctx *pulumi.Context, name string, args *TalosClusterArgs, opts ...pulumi.ResourceOption) (*TalosCluster, error) {
	c := &TalosCluster{}
	if err := component.Register(ctx, typeTalosCluster, name, args.validate(), args.inputs(), c, opts...); err != nil {
		return nil, err
	}
	if err := warnOfRecovery(ctx, args.Cluster); err != nil {
		return nil, err
	}
	c.builder = &builder{ctx: ctx, name: name, args: args, Cluster: args.Cluster, parent: c,
		incarnations: pulumi.StringMap{}, sums: pulumi.StringMap{}, replaced: new(replacements)}
	c.builder.turns = c.builder.newTurns()
	if err := c.builder.build(c); err != nil {
		return nil, component.Failed(typeTalosCluster, name, err)
	}
	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{
		"kubeconfig":  c.Kubeconfig,
		"talosconfig": c.Talosconfig,
		"apiEndpoint": c.APIEndpoint,
	})
}

// inputs returns the component's inputs, which a preview shows.
func (a *TalosClusterArgs) inputs() pulumi.Map {
	if a == nil || a.Cluster == nil {
		return nil
	}
	return pulumi.Map{
		"clusterName":       pulumi.String(a.Cluster.Identity.Name),
		"talosVersion":      pulumi.String(a.Cluster.Talos.Version),
		"kubernetesVersion": pulumi.String(a.Cluster.Kubernetes.Version),
	}
}

// Leaves returns the resources that others wait for: each node's configuration, the bootstrap and the kubeconfig. After Join,
// they include those of the workers that joined.
func (c *TalosCluster) Leaves() []pulumi.Resource { return slices.Clone(c.leaves) }

// Machines returns a resource of each machine that is replaced whenever its VM is another one. After Join, they include those of the
// workers that joined.
func (c *TalosCluster) Machines() []pulumi.Resource { return slices.Clone(c.applies) }

// VMs returns, by the machines' names, texts that tell their VMs from earlier ones. A gate that has such a text as input runs again for
// another VM, also when the run that created the VM has failed before the gate. After Join, they include those of the workers that joined.
func (c *TalosCluster) VMs() pulumi.StringMap { return maps.Clone(c.vms) }

// Installer returns the image that Talos of the declared version and extensions is installed and upgraded from.
func (c *TalosCluster) Installer() pulumi.StringOutput { return c.installer }

// builder registers the component's children.
type builder struct {
	*cluster.Cluster

	ctx    *pulumi.Context
	name   string
	args   *TalosClusterArgs
	parent pulumi.Resource

	// Shared by all machines; set by build.
	schematic pulumi.StringOutput
	images    map[string]*download.File // by Proxmox node
	secrets   *machine.Secrets          // the first
	client    machine.ClientConfigurationOutput
	placed    pulumi.Resource // remembers the hosts of the machines, and refuses moves

	// Machine secrets by the CAs that they are used for, oldest generation first, the declared last. The first are the same of all.
	generations map[rotate.Subject][]*machine.Secrets

	retired  pulumi.Resource // removes the nodes that leave the cluster
	left     pulumi.Resource // removes VMs that are in no state, when the cluster is destroyed; comes after retired, and before every VM
	replaced *replacements   // set by the hook of retired

	// Set by makeMachines.
	vms           []pulumi.Resource // of all machines
	incarnations  pulumi.StringMap  // of all machines, by their names
	controlPlanes []*vm.VirtualMachine

	turns *turns           // of the nodes that this run changes
	sums  pulumi.StringMap // checksum of each machine that was configured so far, by its name

	upgraded pulumi.Resource // brings the nodes to the declared versions; every configuration waits for it
}

func (b *builder) build(c *TalosCluster) (err error) {
	if b.secrets, err = b.machineSecrets(); err != nil {
		return err
	}
	if b.placed, err = b.rememberHosts([]pulumi.Resource{b.secrets}); err != nil {
		return err
	}
	if err := b.makeGenerations(); err != nil {
		return err
	}
	checked := []pulumi.Resource{b.secrets, b.placed}
	if b.schematic, err = b.imageSchematic(checked); err != nil {
		return err
	}
	c.installer = b.installerImage()
	images, err := b.leftoverImages(checked)
	if err != nil {
		return err
	}
	if b.images, err = b.bootImages(append(slices.Clone(checked), images)); err != nil {
		return err
	}
	c.secrets, b.client = b.secrets.MachineSecrets, clientConfiguration(b.declared(rotate.Talos))
	c.Talosconfig = b.talosconfig(b.client)
	before := slices.Concat(checked, b.args.DependsOn)
	rotated, err := b.rotateAll(c.Talosconfig, before)
	if err != nil {
		return err
	}
	if b.retired, err = b.retire(c.Talosconfig, rotated); err != nil {
		return err
	}
	if b.left, err = b.leftoverVMs(); err != nil {
		return err
	}
	vms, err := b.makeMachines(b.FirstMachines(), nil)
	if err != nil {
		return err
	}

	if b.upgraded, err = b.upgrade(c.Talosconfig, b.vms); err != nil {
		return err
	}
	applies, turns, err := b.configure(b.FirstMachines(), vms)
	if err != nil {
		return err
	}
	c.APIEndpoint = pulumi.String(b.Network.Endpoint()).ToStringOutput()
	if c.bootstrap, err = b.bootstrap(c.Talosconfig, applies); err != nil {
		return err
	}
	kubeconfig, err := b.kubeconfig(b.client, c.bootstrap)
	if err != nil {
		return err
	}
	c.Kubeconfig = pulumi.ToSecret(kubeconfig.KubeconfigRaw).(pulumi.StringOutput)
	c.applies, c.vms, c.leaves = applies, b.incarnations, slices.Concat(applies, turns, []pulumi.Resource{c.bootstrap, kubeconfig})
	return nil
}

// makeMachines creates VMs in parallel, after the resources in after. It returns them in the order of the machines.
func (b *builder) makeMachines(machines []cluster.Machine, after []pulumi.Resource) ([]*vm.VirtualMachine, error) {
	var made []*vm.VirtualMachine
	for _, node := range machines {
		if err := b.show(node); err != nil {
			return nil, err
		}
		one, err := b.vm(node, b.images[node.Host], append(slices.Clone(after), b.left))
		if err != nil {
			return nil, err
		}
		b.incarnations[node.Name] = incarnation(one)
		if b.vms = append(b.vms, one); node.Role == cluster.ControlPlane {
			b.controlPlanes = append(b.controlPlanes, one)
		}
		made = append(made, one)
	}
	return made, nil
}

// configure applies the machine configurations of machines, whose VMs are in the same order. It returns the resources that apply them, and
// after the last machines the one that remembers the turns of all. Control planes get their configurations one after the other: a
// configuration that one of them refuses, or that breaks it, does not reach the next.
func (b *builder) configure(machines []cluster.Machine, vms []*vm.VirtualMachine) (applies, turns []pulumi.Resource, err error) {
	var before []pulumi.Resource
	for i, node := range machines {
		configuration, err := b.configuration(node)
		if err != nil {
			return nil, nil, err
		}
		var former []pulumi.Resource
		if node.Role == cluster.ControlPlane {
			former = before
		}
		apply, err := b.apply(node, vms[i], configuration, former...)
		if err != nil {
			return nil, nil, err
		}
		if applies = append(applies, apply); node.Role == cluster.ControlPlane {
			before = []pulumi.Resource{apply}
		}
		b.sums[node.Name] = sumOf(node, configuration)
	}
	if len(machines) == 0 || len(b.sums) < len(b.Machines()) {
		return applies, nil, nil
	}
	remembered, err := b.rememberTurns(applies)
	return applies, []pulumi.Resource{remembered}, err
}

// child combines the options of every child with the child's own.
func (b *builder) child(provider pulumi.ProviderResource, own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return component.Child(b.parent, provider, own...)
}

// proxmox combines the options of a resource in Proxmox VE with its own.
func (b *builder) proxmox(own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return b.child(b.args.ProxmoxProvider, component.ProxmoxPlugin(), pulumi.Composite(own...))
}

// kubeconfig fetches the kubeconfig from the first control plane, at its own address: the VIP answers only once Kubernetes runs. Each
// generation of Kubernetes' CA has its own resource, because the provider fetches a kubeconfig only once.
func (b *builder) kubeconfig(client machine.ClientConfigurationOutput, bootstrap pulumi.Resource) (*taloscluster.Kubeconfig, error) {
	first := pulumi.String(b.ControlPlanes()[0].Address.String())
	name := ofGeneration(b.name+"-kubeconfig", len(b.generations[rotate.Kubernetes]))
	return taloscluster.NewKubeconfig(b.ctx, name, &taloscluster.KubeconfigArgs{
		ClientConfiguration: taloscluster.KubeconfigClientConfigurationArgs{
			CaCertificate:     client.CaCertificate(),
			ClientCertificate: client.ClientCertificate(),
			ClientKey:         client.ClientKey(),
		},
		Endpoint: first,
		Node:     first,
	}, b.child(b.args.TalosProvider, pulumi.DependsOn([]pulumi.Resource{bootstrap}),
		pulumi.AdditionalSecretOutputs([]string{"kubeconfigRaw", "kubernetesClientConfiguration", "clientConfiguration"})))
}
