package readiness_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/talos"
)

// What the program has by then. All of it shows examples/homelab.
var (
	ctx       *pulumi.Context
	declared  *cluster.Cluster
	providers *components.Providers
	machines  *talos.TalosCluster
	network   *cilium.CiliumCore
)

// A gate that opens when every declared node is Ready, and Cilium works on each. What comes on top depends on its leaves.
func ExampleNewReadinessGate() {
	args := readiness.Declared(declared, declared.Machines(), nil)
	args.Kubeconfig, args.Talosconfig, args.CommandProvider = machines.Kubeconfig, machines.Talosconfig, providers.Command
	args.Machines, args.Installer = machines.Machines(), machines.Installer()
	args.Cilium = network.Expected()
	args.DependsOn = append(machines.Leaves(), network.Leaves()...)
	open, err := readiness.NewReadinessGate(ctx, "gate", args)
	if err != nil {
		return
	}
	ctx.Export("gateReport", open.Report)
}
