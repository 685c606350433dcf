package stacks

import (
	"slices"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/argocd"
	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/machines/proxmox"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
	"github.com/slipway-platform/slipway/stacks/steps"
)

// kubernetesName is the name of the resource that stands for the Kubernetes cluster. Like the names of the components, it never changes.
const kubernetesName = "kubernetes-cluster"

// chain holds the resources registered so far. Each step waits for the leaves that it names, and for nothing else.
type chain struct {
	*cluster.Cluster

	beside    []string // the stacks with a file in the checkout
	ctx       *pulumi.Context
	providers *components.Providers
	engine    engine // hands over; nil if the stack does not

	mode        pulumi.Resource // stores the mode that Cilium was installed in
	talos       *talos.TalosCluster
	machines    *readiness.ReadinessGate // waits until the API answers and the nodes have registered
	kubernetes  pulumi.Resource          // stands for the Kubernetes cluster, with all objects in it
	crds        *core.CRDs               // nil if the stack installs none
	namespace   *v1.Namespace            // the engine's
	ownedValues *components.OwnedValues  // of the releases that the engine owns; nil if the stack does not hand over
	network     *cilium.CiliumCore
	gate        *readiness.ReadinessGate // waits until the cluster is healthy, with all nodes that exist by then
	core        *core.CoreServices
	foundation  *secrets.SecretsFoundation
	handover    *components.GitOpsHandover // nil if the stack does not hand over
	storage     *readiness.LaterGate       // waits until pods get volumes; nil without declared classes and drivers
	mesh        *readiness.LaterGate       // waits until the cluster is connected with its peers; nil without peers
	checks      *readiness.LaterGate       // waits until the declared checks hold; nil without checks
}

// deploy registers all components in order, and the outputs. beside are the stacks with a file in the checkout.
func deploy(ctx *pulumi.Context, declared *cluster.Cluster, beside []string) error {
	c := &chain{Cluster: declared, beside: beside, ctx: ctx}
	switch {
	case c.GitOps.ByArgoCD():
		c.engine = &argoCD{chain: c}
	case c.GitOps.Enabled:
		c.engine = &flux{chain: c}
	}
	work := c.work()
	for _, step := range steps.Chain() {
		for _, component := range step.Components {
			for _, do := range work[component] {
				if err := do(); err != nil {
					return err
				}
			}
		}
	}
	for name, value := range c.outputs() {
		ctx.Export(name, value)
	}
	return nil
}

// work returns what registers each component, and the steps before and after it. The order of the components is that of steps.Chain.
func (c *chain) work() map[string][]func() error {
	return map[string][]func() error{
		steps.Talos:    {c.compareRunning, c.makeProviders, c.rememberMode, c.renderNetwork, c.makeCluster},
		steps.Machines: {c.awaitMachines},
		steps.CRDs:     {c.applyCRDs, c.connect, c.makeNamespace},
		steps.Cilium:   {c.installNetwork},
		steps.Gate:     {c.awaitHealth},
		steps.Workers:  {c.joinWorkers},
		steps.Core:     {c.installServices},
		steps.Secrets:  {c.provideSecrets},
		steps.GitOps:   {c.handOver},
		steps.Storage:  {c.awaitStorage},
		steps.Mesh:     {c.awaitMesh},
		steps.Checks:   {c.awaitChecks},
	}
}

func (c *chain) makeProviders() (err error) {
	c.providers, err = components.NewProviders(c.ctx, c.Proxmox, c.ProxmoxAPIToken, c.Talos.Factory)
	return err
}

// rememberMode registers the mode before every resource that a switched mode would break.
func (c *chain) rememberMode() (err error) {
	c.mode, err = cilium.RememberMode(c.ctx, steps.Cilium, c.Cilium.Mode)
	return err
}

// renderNetwork renders Cilium's manifests in mode inline: before the machines, whose configuration contains them.
func (c *chain) renderNetwork() (err error) {
	if !c.Cilium.Inline() {
		return nil
	}
	if err := c.providers.MakeRenderer(c.ctx, c.mode); err != nil {
		return err
	}
	c.network, err = cilium.NewCiliumCore(c.ctx, steps.Cilium, &cilium.CiliumCoreArgs{
		Cluster: c.Knowing(c.OfNetwork()), TLSProvider: c.providers.TLS, Renderer: c.providers.Renderer,
	})
	return err
}

func (c *chain) makeCluster() (err error) {
	args := &talos.TalosClusterArgs{
		Cluster:         c.Knowing(c.OfMachines()),
		DependsOn:       []pulumi.Resource{c.mode},
		Hypervisor:      proxmox.Hypervisor{Provider: c.providers.Proxmox},
		TalosProvider:   c.providers.Talos,
		CommandProvider: c.providers.Command,
	}
	if c.Cilium.Inline() {
		args.InlineManifests = []talos.InlineManifest{{Name: cilium.ManifestName, Contents: c.network.InlineManifests}}
	}
	c.talos, err = talos.NewTalosCluster(c.ctx, steps.Talos, args)
	return err
}

// awaitMachines waits until the API answers and the machines have registered. Without a CNI, no node is Ready yet.
func (c *chain) awaitMachines() (err error) {
	if c.machines, err = readiness.NewReadinessGate(c.ctx, steps.Machines, c.machinesGate()); err != nil {
		return err
	}
	c.kubernetes, err = c.machines.Identify(c.ctx, kubernetesName, c.Identity.Name)
	return err
}

func (c *chain) applyCRDs() (err error) {
	if sets := c.CRDs.Installed(); len(sets) > 0 {
		c.crds, err = core.NewCRDs(c.ctx, steps.CRDs, &core.CRDsArgs{Sets: sets, Lifetime: c.after(c.machines), Steps: c.steps()})
	}
	return err
}

// connect creates the provider of objects after the CRDs. When it starts, it reads the schemas of all kinds, once and for at most 32 s. An
// API server that gets a hundred CRDs computes these schemas again and again, and if busy does not answer in time. Then the provider takes
// the cluster for unreachable during the whole run.
func (c *chain) connect() error {
	return c.providers.Connect(c.ctx, c.Identity.Name, c.talos.Kubeconfig, c.after(c.machines, c.crds).DependsOn)
}

// makeNamespace makes the engine's namespace, which exists without the engine, too. The option of the engine refuses the engine of somebody
// else before the first object in it.
func (c *chain) makeNamespace() (err error) {
	before := pulumi.Composite()
	if c.engine != nil {
		if before, err = c.engine.refuseForeign(); err != nil {
			return err
		}
	}
	in := c.objectsAfter(c.machines, c.crds)
	if c.GitOps.Engine == cluster.EngineArgoCD {
		c.namespace, err = argocd.NewNamespace(c.ctx, steps.Secrets+"-argocd-namespace", c.Identity.Name, in, before)
		if c.engine != nil {
			c.ownedValues = argocd.OwnedValues(steps.GitOps, c.namespace, before)
		}
		return err
	}
	if c.namespace, err = secrets.NewNamespace(c.ctx, steps.Secrets, in, before); err != nil {
		return err
	}
	if c.engine != nil {
		c.ownedValues = gitops.OwnedValues(c.ctx, steps.GitOps, c.namespace, before)
	}
	return nil
}

// installNetwork installs Cilium in mode helm, after the CRDs, which Cilium's operator looks for when it starts.
func (c *chain) installNetwork() (err error) {
	in := c.objectsAfter(c.machines, c.crds)
	if c.Cilium.Inline() {
		return c.network.HandToEngine(c.ctx, in, c.talos.Kubeconfig)
	}
	in.DependsOn = append(in.DependsOn, c.mode)
	c.network, err = cilium.NewCiliumCore(c.ctx, steps.Cilium, &cilium.CiliumCoreArgs{
		Cluster: c.Knowing(c.OfNetwork()), TLSProvider: c.providers.TLS, InCluster: in, Kubeconfig: c.talos.Kubeconfig,
	})
	return err
}

// awaitHealth waits until the cluster is healthy: all of it, or its control plane if the workers join later.
func (c *chain) awaitHealth() (err error) {
	if c.gate, err = readiness.NewReadinessGate(c.ctx, steps.Gate, c.healthGate()); err != nil || c.crds == nil {
		return err
	}
	return c.network.RestartOperatorForCRDs(c.ctx, c.objectsAfter(c.gate, c.crds))
}

// joinWorkers creates the workers that join after the gate, and a second gate that covers them. Later components wait for that
// gate instead of the first one.
func (c *chain) joinWorkers() error {
	if len(c.JoiningMachines()) == 0 {
		return nil
	}
	joined, err := c.talos.Join(c.ctx, c.gate.Leaves())
	if err != nil {
		return err
	}
	c.gate, err = readiness.NewReadinessGate(c.ctx, steps.Workers, c.workersGate(joined))
	return err
}

func (c *chain) installServices() (err error) {
	c.core, err = core.NewCoreServices(c.ctx, steps.Core, &core.CoreServicesArgs{
		Services: c.Services(), Git: c.InGit, Timeout: c.Readiness.Timeout.Duration,
		InCluster: c.objectsAfter(c.gate, c.crds), Steps: c.steps(),
	}, c.afterGate())
	return err
}

func (c *chain) provideSecrets() (err error) {
	args := &secrets.SecretsFoundationArgs{InCluster: c.objectsAfter(c.gate), Namespace: c.namespace}
	if c.engine != nil {
		c.engine.prepare(args)
	}
	c.declareProviders(args)
	c.foundation, err = secrets.NewSecretsFoundation(c.ctx, steps.Secrets, args, c.afterGate())
	return err
}

// declareProviders adds the declared providers of secrets. Their pods need the core services, and their kinds the CRDs.
func (c *chain) declareProviders(args *secrets.SecretsFoundationArgs) {
	args.Steps, args.Timeout = c.steps(), c.Readiness.Timeout.Duration
	args.Services, args.InGit = slices.Concat(c.core.Leaves(), c.crds.Leaves()), c.InGit
	if declared := c.Providers.SealedSecrets; declared != nil {
		args.Providers = append(args.Providers, &secrets.SealedSecrets{
			Settings: *declared, Keys: c.Secrets.Sealing(), TLSProvider: c.providers.TLS,
		})
	}
	if declared := c.Providers.OnePassword; declared != nil {
		provider := &secrets.OnePassword{Settings: *declared, Credentials: c.OnePasswordCredentials, Token: c.OnePasswordToken}
		if c.Storage.Vault != "" {
			provider.Storage = &secrets.StorageVault{
				Vaults: []string{c.Storage.Vault}, Token: c.OnePasswordStorageToken, Readers: c.Storage.VaultReaders(),
			}
			if declared.OneClient() {
				provider.Storage.Vaults, provider.Storage.Token = declared.Vaults, c.OnePasswordToken
			}
		}
		args.Providers = append(args.Providers, provider)
	}
}

// handOver hands the cluster over to GitOps. It waits for the core services, too: without cluster DNS, the engine cannot resolve the
// repository's host. Without it, Pulumi deletes a FluxInstance of an earlier run before the operator, which then uninstalls Flux. What Flux
// has applied is removed before, or stays, by the deletion policy of the earlier run.
func (c *chain) handOver() (err error) {
	if c.engine != nil {
		c.handover, err = c.engine.handOver()
	}
	return err
}

// awaitStorage waits until pods get volumes. Flux has applied the storage by then, and waited for it.
func (c *chain) awaitStorage() (err error) {
	if c.handover != nil && c.Storage.IsVerified() {
		c.storage, err = readiness.NewStorageGate(c.ctx, steps.Storage, c.storageGate(), c.afterGate())
	}
	return err
}

// awaitMesh waits until the cluster is connected with the peers that exist. It comes last: a pool in the tree that Flux applies assigns
// the mesh address.
func (c *chain) awaitMesh() (err error) {
	if c.Mesh.IsMember() {
		c.mesh, err = readiness.NewMeshGate(c.ctx, steps.Mesh, c.meshGate(), c.afterGate())
	}
	return err
}

// awaitChecks waits until the objects of the declared checks exist, and the checks hold. Flux may have applied them.
func (c *chain) awaitChecks() (err error) {
	if len(c.Checks) > 0 {
		c.checks, err = readiness.NewChecksGate(c.ctx, steps.Checks, c.checksGate(), c.afterGate())
	}
	return err
}

// afterGate makes a component itself wait for the gate, not only its children: a run that fails at the gate has registered
// nothing of it.
func (c *chain) afterGate() pulumi.ResourceOption { return pulumi.DependsOn(c.gate.Leaves()) }

// awaited is a component that others wait for.
type awaited interface{ Leaves() []pulumi.Resource }

// after returns the lifetime of children that wait for the leaves of others.
func (c *chain) after(others ...awaited) components.Lifetime {
	var leaves []pulumi.Resource
	for _, other := range others {
		leaves = slices.Concat(leaves, other.Leaves())
	}
	return components.Lifetime{DependsOn: leaves, DeletedWith: c.kubernetes}
}

// objectsAfter returns the arguments of a component whose objects wait for the leaves of others.
func (c *chain) objectsAfter(others ...awaited) components.InCluster {
	return components.InCluster{Lifetime: c.after(others...), KubernetesProvider: c.providers.Kubernetes, OwnedValues: c.ownedValues}
}

// steps returns the arguments of a component that runs slipway-probe.
func (c *chain) steps() components.Steps {
	return components.Steps{
		Name: c.Identity.Name, Kubeconfig: c.talos.Kubeconfig, CommandProvider: c.providers.Command, Skip: c.Lifecycle.Skip,
	}
}
