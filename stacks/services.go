package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/secrets"
)

// gitCredentials is the name of the Secret that Flux's sync pulls with.
const gitCredentials = "flux-system"

func (c *chain) coreServices() *core.CoreServicesArgs {
	s := c.stack
	args := &core.CoreServicesArgs{
		Cluster:    s.Cluster.Name,
		Kubeconfig: c.cluster.Kubeconfig,
		CoreDNS: core.CoreDNS{
			ServiceCIDRs: serviceCIDRs(s.Network), Replicas: s.CoreDNS.Replicas,
			Version: s.CoreDNS.Version, Repository: s.CoreDNS.Repository,
		},
		Timeout:            s.Readiness.Timeout.Duration,
		KubernetesProvider: c.providers.kubernetes,
		CommandProvider:    c.providers.command,
		DependsOn:          append(c.definitions(), c.gate.Probe()),
		DeletedWith:        c.cluster.Bootstrap(),
	}
	if s.Spegel.Enabled.On() {
		args.Spegel = &core.Spegel{Version: s.Spegel.Version, Chart: s.Spegel.Chart}
	}
	if s.CertManager.Enabled.On() {
		args.CertManager = &core.CertManager{Version: s.CertManager.Version, Repository: s.CertManager.Repository}
	}
	return args
}

func (c *chain) secrets() *secrets.SecretsFoundationArgs {
	return &secrets.SecretsFoundationArgs{
		Git:                c.git,
		KubernetesProvider: c.providers.kubernetes,
		DependsOn:          []pulumi.Resource{c.gate.Probe()},
		DeletedWith:        c.cluster.Bootstrap(),
	}
}

// gitops waits for the core services, too: without cluster DNS Flux finds no repository.
func (c *chain) gitops() *gitops.GitOpsHandoverArgs {
	g := c.stack.GitOps
	return &gitops.GitOpsHandoverArgs{
		Cluster:    c.stack.Cluster.Name,
		Kubeconfig: c.cluster.Kubeconfig,
		Operator:   gitops.Operator{Chart: g.Operator.Chart, Version: g.Operator.Version},
		Flux:       gitops.Flux{Version: g.Flux.Version, Registry: g.Flux.Registry},
		Sync: gitops.Sync{
			URL: g.URL, Branch: g.Branch, Path: g.Path, PullSecret: gitCredentials, Interval: g.Interval.Duration,
		},
		Settings:           settings(c.stack),
		Timeout:            g.Timeout.Duration,
		KubernetesProvider: c.providers.kubernetes,
		CommandProvider:    c.providers.command,
		DependsOn:          append(append(c.core.Leaves(), c.foundation.Leaves()...), c.gate.Probe()),
		DeletedWith:        c.cluster.Bootstrap(),
	}
}
