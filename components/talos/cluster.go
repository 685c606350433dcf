// Package talos brings up Talos Linux Kubernetes clusters on the machines of a hypervisor.
package talos

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
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
	secrets   machine.MachineSecretsOutput // the first
	nodes     []node
	later     []node            // workers that join after the gate and are made already, because they are replaced
	others    []pulumi.Resource // to wait for, besides the nodes' configurations
	removal   *removal          // of nodes that are not declared any more
	joins     *joins            // how workers join; nil once they have
	complete  bool              // all nodes are there, and their turns are remembered
}

// NewTalosCluster has machines made that boot Talos's image, configures them and bootstraps etcd on the first control plane.
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
	owner := machines.Owner{Cluster: args.Cluster, Component: c, Name: name, CommandProvider: args.CommandProvider}
	if err := c.build(ctx, &registrar{owner, args}); err != nil {
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
func (c *TalosCluster) Leaves() []pulumi.Resource { return slices.Concat(appliesOf(c.nodes), c.others) }

// Machines returns a resource of each machine that is replaced whenever the machine is another one. After Join, they include those of the
// workers that joined.
func (c *TalosCluster) Machines() []pulumi.Resource { return appliesOf(c.nodes) }

// VMs returns, by the machines' names, texts that tell their VMs from earlier ones. A gate with such a text as input runs again for another
// VM, also if the run that created the VM failed before the gate. After Join, the workers that joined are included.
func (c *TalosCluster) VMs() pulumi.StringMap {
	vms := pulumi.StringMap{}
	for _, node := range c.nodes {
		vms[node.Node.Name] = c.removal.vms[node.Node.Name]
	}
	return vms
}

// Installer returns the image that Talos of the declared version and extensions is installed and upgraded from; "" if machines need
// different ones, because some use SecureBoot.
func (c *TalosCluster) Installer() pulumi.StringOutput { return c.installer }

// registrar registers the component's children. It has no state: each step returns what it registers.
type registrar struct {
	machines.Owner

	args *TalosClusterArgs
}

// build registers the children.
func (c *TalosCluster) build(ctx *pulumi.Context, r *registrar) error {
	secrets, placed, err := r.begin(ctx)
	if err != nil {
		return err
	}
	checked := []pulumi.Resource{secrets.first(), placed}
	schematic, err := r.imageSchematic(ctx, checked)
	if err != nil {
		return err
	}
	images, err := r.args.Hypervisor.Images(ctx, r.Owner, schematic, checked)
	if err != nil {
		return err
	}
	c.secrets, c.Talosconfig = secrets.first().MachineSecrets, r.talosconfig(ctx, secrets.client())
	c.installer = r.onlyInstaller(schematic)
	rotated, err := r.rotateAll(ctx, secrets, c.Talosconfig, slices.Concat(checked, r.args.DependsOn))
	if err != nil {
		return err
	}
	removal, err := r.retire(ctx, c.Talosconfig, rotated)
	if err != nil {
		return err
	}
	c.removal = removal
	turns := r.newTurns(ctx, secrets.client())
	maker, err := images.Maker(ctx, turns, []pulumi.Resource{removal.run})
	if err != nil {
		return err
	}
	c.joins = &joins{
		machinery{r, maker, placed, removal, removal.rejoining(ctx, r.Cluster, turns)},
		configurer{r, secrets.current(), secrets.client(), schematic, turns, nil},
	}
	if err := c.addFirst(ctx, c.joins); err != nil {
		return err
	}
	return c.start(ctx, r, secrets)
}

// addFirst adds the nodes that are created before the readiness gate. Those that are replaced join again before any other is changed, and
// before the upgrade.
func (c *TalosCluster) addFirst(ctx *pulumi.Context, joins *joins) error {
	machinery, configurer := joins.machinery, &joins.configurer
	again, err := machinery.make(ctx, machinery.again, nil)
	if err != nil {
		return err
	}
	back, err := c.add(ctx, *configurer, again)
	if err != nil {
		return err
	}
	made, err := machinery.make(ctx, machinery.others(machinery.FirstMachines()), back)
	if err != nil {
		return err
	}
	configurer.upgraded, err = machinery.upgrade(ctx, c.Talosconfig, configurer.schematic, slices.Concat(again, made), configurer.turns)
	if err != nil {
		return err
	}
	if _, err := c.add(ctx, *configurer, made); err != nil || c.complete {
		return err
	}
	first := len(machinery.FirstMachines()) // control planes, which are declared before the workers
	c.nodes, c.later = c.nodes[:first:first], c.nodes[first:]
	return nil
}

// add configures machines, and remembers the turns of all nodes after the last ones. It returns the resources to wait for.
func (c *TalosCluster) add(ctx *pulumi.Context, configurer configurer, made []machines.Machine) ([]pulumi.Resource, error) {
	nodes, err := configurer.configure(ctx, made)
	if err != nil {
		return nil, err
	}
	c.nodes = inOrder(append(c.nodes, nodes...), configurer.Machines())
	leaves := appliesOf(nodes)
	if c.complete || len(c.nodes) < len(configurer.Machines()) {
		return leaves, nil
	}
	c.complete = true
	remembered, err := configurer.turns.remember(ctx, c.nodes, appliesOf(c.nodes))
	if err != nil {
		return nil, err
	}
	c.others = append(c.others, remembered)
	return append(leaves, remembered), nil
}

// inOrder returns nodes in the order in which they are declared: the bootstrap would run again for another one.
func inOrder(nodes []node, declared []cluster.Machine) []node {
	place := func(of node) int {
		return slices.IndexFunc(declared, func(machine cluster.Machine) bool { return machine.Name == of.Node.Name })
	}
	slices.SortFunc(nodes, func(a, b node) int { return place(a) - place(b) })
	return nodes
}

// start bootstraps etcd, and fetches the kubeconfig.
func (c *TalosCluster) start(ctx *pulumi.Context, r *registrar, secrets generations) error {
	c.APIEndpoint = pulumi.String(r.Network.Endpoint()).ToStringOutput()
	bootstrap, err := r.bootstrap(ctx, c.Talosconfig, secrets, c.nodes)
	if err != nil {
		return err
	}
	kubeconfig, err := r.kubeconfig(ctx, secrets, bootstrap)
	if err != nil {
		return err
	}
	c.Kubeconfig = pulumi.ToSecret(kubeconfig.KubeconfigRaw).(pulumi.StringOutput)
	c.others = append(c.others, bootstrap, kubeconfig)
	return nil
}

// begin registers the machine secrets, and what remembers where the machines are. Until then nothing has an effect outside of the state.
func (r *registrar) begin(ctx *pulumi.Context) (secrets generations, placed pulumi.Resource, err error) {
	first, err := r.firstSecrets(ctx)
	if err != nil {
		return nil, nil, err
	}
	if placed, err = r.args.Hypervisor.Place(ctx, r.Owner, []pulumi.Resource{first}); err != nil {
		return nil, nil, err
	}
	secrets, err = r.makeGenerations(ctx, first)
	return secrets, placed, err
}
