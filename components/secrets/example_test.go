package secrets_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
)

// What the program has by then. All of it shows examples/homelab.
var (
	ctx       *pulumi.Context
	declared  *cluster.Cluster
	providers *components.Providers
	machines  *talos.TalosCluster
	gate      *readiness.ReadinessGate
	services  *core.CoreServices
	identity  pulumi.Resource // of gate.Identify: another cluster of the name replaces what is in this one
)

// The credentials of the Git repository, and Sealed Secrets with a key that the stack makes.
func ExampleNewSecretsFoundation() {
	in := components.InCluster{
		KubernetesProvider: providers.Kubernetes,
		Lifetime:           components.Lifetime{DependsOn: gate.Leaves(), DeletedWith: identity},
	}
	namespace, err := secrets.NewNamespace(ctx, "secrets", in, pulumi.Composite())
	if err != nil {
		return
	}
	foundation, err := secrets.NewSecretsFoundation(ctx, "secrets", &secrets.SecretsFoundationArgs{
		InCluster: in, Namespace: namespace,
		Steps: components.Steps{Name: declared.Identity.Name, Kubeconfig: machines.Kubeconfig, CommandProvider: providers.Command},
		Flux:  &secrets.Flux{GitOps: declared.GitOps, Access: declared.Secrets.OfSource(declared.GitOps.Access())},
		Providers: []secrets.Provider{&secrets.SealedSecrets{
			Settings: *declared.Providers.SealedSecrets, Keys: declared.Secrets.Sealing(), TLSProvider: providers.TLS,
		}},
		Services: services.Leaves(), Timeout: declared.Readiness.Timeout.Duration,
	}, pulumi.DependsOn(gate.Leaves()))
	if err != nil {
		return
	}
	_ = foundation.Flux // the names of the Secrets, for GitOpsHandover
}
