package argocd_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/argocd"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
)

// What the program has by then. All of it shows examples/homelab.
var (
	ctx        *pulumi.Context
	stack      *cluster.Cluster // as its file declares it
	providers  *components.Providers
	machines   *talos.TalosCluster
	gate       *readiness.ReadinessGate
	foundation *secrets.SecretsFoundation // with ArgoCD, and the namespace of NewNamespace
	identity   pulumi.Resource            // of gate.Identify: another cluster of the name replaces what is in this one
)

// Argo CD, which has applied the repository when the run ends.
func ExampleNewGitOpsHandover() {
	handover, err := argocd.NewGitOpsHandover(ctx, "gitops", &argocd.GitOpsHandoverArgs{
		GitOps: stack.GitOps, Release: stack.ArgoCDService(), Settings: stack.Settings(), VMs: machines.VMs(),
		Access: machines.Fingerprint(stack.AccessToSource()...),
		Steps:  components.Steps{Name: stack.Identity.Name, Kubeconfig: machines.Kubeconfig, CommandProvider: providers.Command},
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
