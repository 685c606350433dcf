// Package stacks turns a stack's configuration into its resources: it calls the components and passes outputs along.
package stacks

import (
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
	"github.com/slipway-platform/slipway/stacks/config"
)

// The components' names. They do not follow the configuration, so that no change of it renames what exists.
const (
	talosName    = "talos"
	machinesName = "machines"
	ciliumName   = "cilium"
	gateName     = "gate"
	secretsName  = "secrets"
	gitopsName   = "gitops"
)

// Deploy is the program: it brings the running stack's cluster from VMs to a Flux that has taken over. The
// configuration is loaded, and everything whose shape is known by then is checked, before anything is registered.
func Deploy(ctx *pulumi.Context) error {
	source, err := config.FromEngine(ctx, os.Getenv(pulumi.EnvConfig))
	if err != nil {
		return err
	}
	stack, err := config.Load(source)
	if err != nil {
		return err
	}
	plan, err := newPlan(stack)
	if err != nil {
		return err
	}
	return plan.deploy(ctx)
}

// deploy registers the chain. Each step is handed the leaves that it has to wait for.
func (p *plan) deploy(ctx *pulumi.Context) error {
	providers, err := newProviders(ctx, p.stack)
	if err != nil {
		return err
	}
	cluster, err := talos.NewTalosCluster(ctx, talosName, p.talos(providers))
	if err != nil {
		return err
	}
	machines, err := readiness.NewReadinessGate(ctx, machinesName, p.machinesGate(cluster, providers))
	if err != nil {
		return err
	}
	if err := providers.connect(ctx, p.stack, cluster.Kubeconfig, machines.After()); err != nil {
		return err
	}
	network, err := cilium.NewCiliumCore(ctx, ciliumName, p.cilium(cluster, machines, providers))
	if err != nil {
		return err
	}
	gate, err := readiness.NewReadinessGate(ctx, gateName, p.gate(cluster, network, providers))
	if err != nil {
		return err
	}
	foundation, err := secrets.NewSecretsFoundation(ctx, secretsName, p.secrets(cluster, gate, providers), gate.After())
	if err != nil {
		return err
	}
	handover, err := gitops.NewGitOpsHandover(ctx, gitopsName, p.gitops(cluster, gate, foundation, providers), gate.After())
	if err != nil {
		return err
	}
	p.export(ctx, cluster, gate, handover)
	return nil
}
