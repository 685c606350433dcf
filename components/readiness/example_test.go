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

	gate  *readiness.ReadinessGate
	steps components.Steps    // name and kubeconfig of the cluster, and the provider of commands
	later components.Lifetime // after the leaves of the handover; deleted with gate.Identify's resource
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

// A gate that opens when pods get volumes of each declared class.
func ExampleNewStorageGate() {
	open, err := readiness.NewStorageGate(ctx, "storage", &readiness.StorageGateArgs{
		Steps: steps, Lifetime: later, Declared: readiness.DeclaredStorage(declared),
		Machines: machines.Machines(), Timeout: declared.Readiness.Timeout.Duration,
	}, pulumi.DependsOn(gate.Leaves()))
	if err != nil {
		return
	}
	ctx.Export("storageReport", open.Report)
}

// A gate that opens when every agent sees every peer that exists.
func ExampleNewMeshGate() {
	open, err := readiness.NewMeshGate(ctx, "mesh", &readiness.MeshGateArgs{
		Steps: steps, Lifetime: later, Declared: network.ExpectedMesh(false), Verifies: network.Verifies(),
		Machines: machines.Machines(), Timeout: declared.Readiness.Timeout.Duration,
	}, pulumi.DependsOn(gate.Leaves()))
	if err != nil {
		return
	}
	ctx.Export("meshReport", open.Report)
}

// A gate that opens when the declared checks hold.
func ExampleNewChecksGate() {
	open, err := readiness.NewChecksGate(ctx, "checks", &readiness.ChecksGateArgs{
		Steps: steps, Lifetime: later, Declared: readiness.DeclaredChecks(declared),
		Machines: machines.Machines(), Timeout: declared.Readiness.Timeout.Duration,
	}, pulumi.DependsOn(gate.Leaves()))
	if err != nil {
		return
	}
	ctx.Export("checksReport", open.Report)
}
