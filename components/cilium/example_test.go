package cilium_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/cilium"
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
	gate      *readiness.ReadinessGate // open as soon as the machines are registered
	crds      *core.CRDs
	identity  pulumi.Resource // of gate.Identify: another cluster of the name replaces what is in this one
)

// Cilium by Helm, once the API answers and its CRDs are there.
func ExampleNewCiliumCore() {
	mode, err := cilium.RememberMode(ctx, "cilium", declared.Cilium.Mode)
	if err != nil {
		return
	}
	network, err := cilium.NewCiliumCore(ctx, "cilium", &cilium.CiliumCoreArgs{
		Cluster: declared, TLSProvider: providers.TLS, Kubeconfig: machines.Kubeconfig,
		InCluster: components.InCluster{
			KubernetesProvider: providers.Kubernetes,
			Lifetime: components.Lifetime{
				DependsOn: append(append(gate.Leaves(), crds.Leaves()...), mode), DeletedWith: identity,
			},
		},
	})
	if err != nil {
		return
	}
	_ = network.Leaves() // what the gate waits for, with network.Expected() and network.Verifies()
}
