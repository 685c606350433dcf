package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
)

// The components' names. They do not follow the configuration, so that no change of it renames what exists.
const (
	talosName    = "talos"
	machinesName = "machines"
	crdsName     = "crds"
	ciliumName   = "cilium"
	gateName     = "gate"
	workersName  = "workers"
	coreName     = "core"
	secretsName  = "secrets"
	gitopsName   = "gitops"
)

// chain is a plan on its way: what its steps have registered so far. Each step is handed the leaves that it has to wait
// for, and nothing else keeps it from starting.
type chain struct {
	*plan
	ctx       *pulumi.Context
	providers *providers

	mode       pulumi.Resource // remembers how Cilium gets into the cluster
	cluster    *talos.TalosCluster
	machines   *readiness.ReadinessGate // the API answers and the nodes have registered
	crds       *core.CRDs               // nil where the stack takes none
	network    *cilium.CiliumCore
	gate       *readiness.ReadinessGate // the cluster is healthy, all of it that is there by then
	core       *core.CoreServices
	foundation *secrets.SecretsFoundation
	handover   *gitops.GitOpsHandover
}

// deploy registers the chain.
func (p *plan) deploy(ctx *pulumi.Context) error {
	c := &chain{plan: p, ctx: ctx}
	for _, step := range []func() error{
		c.makeProviders,
		c.rememberMode,
		c.renderNetwork,
		c.makeCluster,
		c.awaitMachines,
		c.connect,
		c.applyCRDs,
		c.installNetwork,
		c.awaitHealth,
		c.joinWorkers,
		c.installServices,
		c.laySecrets,
		c.handOver,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	c.export()
	return nil
}

func (c *chain) makeProviders() (err error) {
	c.providers, err = newProviders(c.ctx, c.stack)
	return err
}

// rememberMode comes before all that a switched mode would break.
func (c *chain) rememberMode() (err error) {
	c.mode, err = cilium.RememberMode(c.ctx, ciliumName, cilium.Mode(c.stack.Cilium.Mode))
	return err
}

// renderNetwork makes Cilium's manifests before the machines that are to carry them.
func (c *chain) renderNetwork() (err error) {
	if !c.inline() {
		return nil
	}
	if err := c.providers.connectNowhere(c.ctx, c.mode); err != nil {
		return err
	}
	c.network, err = cilium.NewCiliumCore(c.ctx, ciliumName, c.inlineCilium())
	return err
}

func (c *chain) makeCluster() (err error) {
	c.cluster, err = talos.NewTalosCluster(c.ctx, talosName, c.talos())
	return err
}

// awaitMachines is passed once the API answers and the machines have registered: without a CNI no node is Ready yet.
func (c *chain) awaitMachines() (err error) {
	c.machines, err = readiness.NewReadinessGate(c.ctx, machinesName, c.machinesGate())
	return err
}

func (c *chain) connect() error {
	return c.providers.connect(c.ctx, c.stack, c.cluster.Kubeconfig, c.machines.After())
}

func (c *chain) applyCRDs() (err error) {
	if args := c.crdsArgs(); args != nil {
		c.crds, err = core.NewCRDs(c.ctx, crdsName, args)
	}
	return err
}

func (c *chain) installNetwork() (err error) {
	if !c.inline() {
		c.network, err = cilium.NewCiliumCore(c.ctx, ciliumName, c.releasedCilium())
	}
	return err
}

// awaitHealth is passed once the cluster is healthy: all of it, or its control plane where the workers join later.
func (c *chain) awaitHealth() (err error) {
	if c.gate, err = readiness.NewReadinessGate(c.ctx, gateName, c.healthGate()); err != nil || c.crds == nil {
		return err
	}
	return c.network.RestartOperatorForCRDs(c.ctx, c.operatorRestart())
}

// joinWorkers lets the workers follow the control plane, and the gate that counts is then the one that covers them.
func (c *chain) joinWorkers() error {
	if !c.workersFollow() {
		return nil
	}
	joined, err := c.cluster.Join(c.ctx, []pulumi.Resource{c.gate.Probe()})
	if err != nil {
		return err
	}
	c.gate, err = readiness.NewReadinessGate(c.ctx, workersName, c.workersGate(joined))
	return err
}

func (c *chain) installServices() (err error) {
	c.core, err = core.NewCoreServices(c.ctx, coreName, c.coreServices(), c.gate.After())
	return err
}

func (c *chain) laySecrets() (err error) {
	c.foundation, err = secrets.NewSecretsFoundation(c.ctx, secretsName, c.secrets(), c.gate.After())
	return err
}

func (c *chain) handOver() (err error) {
	c.handover, err = gitops.NewGitOpsHandover(c.ctx, gitopsName, c.gitops(), c.gate.After())
	return err
}
