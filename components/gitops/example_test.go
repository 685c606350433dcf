package gitops_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
)

// What the program has by then. All of it shows examples/homelab.
var (
	ctx        *pulumi.Context
	declared   *cluster.Cluster
	providers  *components.Providers
	machines   *talos.TalosCluster
	gate       *readiness.ReadinessGate
	foundation *secrets.SecretsFoundation
	identity   pulumi.Resource // of gate.Identify: another cluster of the name replaces what is in this one
)

// Flux, which has applied the repository when the run ends.
func ExampleNewGitOpsHandover() {
	handover, err := gitops.NewGitOpsHandover(ctx, "gitops", &gitops.GitOpsHandoverArgs{
		GitOps: declared.GitOps, Secrets: foundation.Flux, Settings: declared.Settings(), VMs: machines.VMs(), OperatorAfter: gate.Leaves(),
		Steps: components.Steps{Name: declared.Identity.Name, Kubeconfig: machines.Kubeconfig, CommandProvider: providers.Command},
		InCluster: components.InCluster{
			KubernetesProvider: providers.Kubernetes,
			Lifetime:           components.Lifetime{DependsOn: foundation.Leaves(), DeletedWith: identity},
		},
	}, pulumi.DependsOn(gate.Leaves()))
	if err != nil {
		return
	}
	ctx.Export("revision", handover.Revision)
}
