package stacks

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/readiness"
)

// machinesGate covers the machines that are created before Cilium. It lists the declared checks and waits for none: Cilium comes after it.
func (c *chain) machinesGate() *readiness.ReadinessGateArgs {
	args := c.gateFor(c.FirstMachines(), c.JoiningMachines())
	args.DependsOn, args.Checks = c.talos.Leaves(), c.Checks
	return args
}

// healthGate covers the same machines, and Cilium on them.
func (c *chain) healthGate() *readiness.ReadinessGateArgs {
	args := c.gateFor(c.FirstMachines(), c.JoiningMachines())
	args.DependsOn = slices.Concat(c.talos.Leaves(), c.network.Leaves(), c.machines.Leaves())
	c.verifyNetwork(args)
	return args
}

// workersGate covers the whole cluster, once the workers that join after the first gate have joined.
func (c *chain) workersGate(joined []pulumi.Resource) *readiness.ReadinessGateArgs {
	args := c.gateFor(c.Machines(), nil)
	args.DependsOn = slices.Concat(joined, c.gate.Leaves())
	c.verifyNetwork(args)
	return args
}

// meshGate covers the mesh as the stack files of all its clusters declare it.
func (c *chain) meshGate() *readiness.MeshGateArgs {
	return laterGate(c, c.network.ExpectedMesh(c.handover == nil), c.network.Verifies(), c.gate, c.network, c.handover)
}

// storageGate covers the storage that the tree brings, on every node that takes ordinary pods.
func (c *chain) storageGate() *readiness.StorageGateArgs {
	return laterGate(c, readiness.DeclaredStorage(c.Cluster), nil, c.gate, c.handover)
}

// checksGate covers the declared checks. It comes after the handover, because Flux may bring the objects of the checks.
func (c *chain) checksGate() *readiness.ChecksGateArgs {
	return laterGate(c, readiness.DeclaredChecks(c.Cluster), nil, c.gate, c.handover)
}

// laterGate returns the arguments of a gate of what is declared, which comes after others.
func laterGate[S any](c *chain, declared S, verifies map[string]pulumi.Input, others ...awaited) *readiness.LaterGateArgs[S] {
	return &readiness.LaterGateArgs[S]{
		Steps: c.steps(), Lifetime: c.after(others...), Declared: declared, Machines: c.talos.Machines(),
		Timeout: c.Readiness.Timeout.Duration, Verifies: c.withVMs(verifies),
	}
}

// verifyNetwork makes the gate cover Cilium, and run again when Cilium's version or values change. Such a gate waits for
// the declared checks.
func (c *chain) verifyNetwork(args *readiness.ReadinessGateArgs) {
	args.Cilium, args.Checks = c.network.Expected(), c.Checks
	maps.Copy(args.Verifies, c.network.Verifies())
}

// gateFor returns the arguments of a gate that waits for machines, and that accepts others, which join later.
func (c *chain) gateFor(machines, later []cluster.Machine) *readiness.ReadinessGateArgs {
	args := readiness.Declared(c.Cluster, machines, later)
	args.Kubeconfig, args.Talosconfig = c.talos.Kubeconfig, c.talos.Talosconfig
	args.Machines, args.Installer = c.talos.Machines(), c.talos.Installer()
	args.CommandProvider = c.providers.Command
	args.Verifies = c.withVMs(args.Verifies)
	return args
}

// withVMs lets a gate run again for another VM of a machine, also if the run that created the VM ended before the gate.
func (c *chain) withVMs(verifies map[string]pulumi.Input) map[string]pulumi.Input {
	all := map[string]pulumi.Input{"vms": c.talos.VMs()}
	maps.Copy(all, verifies)
	return all
}
