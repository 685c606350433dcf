package core_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/talos"
)

// What the program has by then. All of it shows examples/homelab.
var (
	ctx       *pulumi.Context
	declared  *cluster.Cluster
	providers *components.Providers
	machines  *talos.TalosCluster
	gate      *readiness.ReadinessGate
	identity  pulumi.Resource // of gate.Identify: another cluster of the name replaces what is in this one
)

// The CRDs of what Flux installs later. They are there before the Kubernetes provider reads which kinds there are.
func ExampleNewCRDs() {
	crds, err := core.NewCRDs(ctx, "crds", &core.CRDsArgs{
		Sets:     declared.CRDs.Installed(),
		Steps:    components.Steps{Name: declared.Identity.Name, Kubeconfig: machines.Kubeconfig, CommandProvider: providers.Command},
		Lifetime: components.Lifetime{DependsOn: gate.Leaves(), DeletedWith: identity},
	})
	if err != nil {
		return
	}
	_ = providers.Connect(ctx, declared.Identity.Name, machines.Kubeconfig, crds.Leaves())
}

// CoreDNS and the other services that a stack declares, each until its pods run.
func ExampleNewCoreServices() {
	_, _ = core.NewCoreServices(ctx, "core", &core.CoreServicesArgs{
		Services: declared.Services(),
		Timeout:  declared.Readiness.Timeout.Duration,
		Steps:    components.Steps{Name: declared.Identity.Name, Kubeconfig: machines.Kubeconfig, CommandProvider: providers.Command},
		InCluster: components.InCluster{
			KubernetesProvider: providers.Kubernetes,
			Lifetime:           components.Lifetime{DependsOn: gate.Leaves(), DeletedWith: identity},
		},
	}, pulumi.DependsOn(gate.Leaves()))
}
