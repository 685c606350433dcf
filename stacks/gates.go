package stacks

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// machinesGate covers the machines that are created before Cilium.
func (c *chain) machinesGate() *readiness.ReadinessGateArgs {
	args := c.gateFor(c.FirstMachines(), c.JoiningMachines())
	args.DependsOn = c.talos.Leaves()
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
	lifetime := c.after(c.gate, c.network)
	if c.handover != nil {
		lifetime = c.after(c.gate, c.network, c.handover)
	}
	declared := mesh.Spec{
		Name: c.Identity.Name, ID: c.Identity.ID, Address: c.Network.LoadBalancers.Mesh.String(), CA: c.MeshAuthority().Certificate,
		Namespace: chart.ReleaseNamespace, Domain: cluster.MeshDomain, Port: cluster.MeshPort, NoPool: c.handover == nil,
		Inline: c.Cilium.Inline(),
	}
	for _, machine := range c.Machines() {
		declared.Nodes = append(declared.Nodes, machine.Name)
	}
	for _, peer := range c.Mesh.Clusters {
		declared.Peers = append(declared.Peers, mesh.Peer{Name: peer.Name, ID: peer.ID, Nodes: peer.Nodes, Address: peer.Address.String()})
	}
	return &readiness.MeshGateArgs{
		Steps: c.steps(), Lifetime: lifetime, Declared: declared, Machines: c.talos.Machines(), Timeout: c.Readiness.Timeout.Duration,
		Verifies: map[string]pulumi.Input{"cilium": pulumi.String(c.Cilium.Version), "network": pulumi.String(c.fingerprints.network)},
	}
}

// storageGate covers the storage that the tree brings, on every node that takes ordinary pods.
func (c *chain) storageGate() *readiness.StorageGateArgs {
	declared := storage.Spec{Classes: c.Storage.Classes, Drivers: c.Storage.Drivers}
	for _, machine := range c.PodMachines() {
		declared.Nodes = append(declared.Nodes, machine.Name)
	}
	if namespace, name := c.Storage.Connection(); name != "" {
		declared.Connection = &storage.Connection{Provider: c.Storage.ProviderCluster, Namespace: namespace, ExternalSecret: name}
	}
	return &readiness.StorageGateArgs{
		Steps: c.steps(), Lifetime: c.after(c.gate, c.handover), Declared: declared, Machines: c.talos.Machines(),
		Timeout: c.Readiness.Timeout.Duration,
	}
}

// verifyNetwork makes the gate cover Cilium, and run again when Cilium's version or values change.
func (c *chain) verifyNetwork(args *readiness.ReadinessGateArgs) {
	args.Cilium = &gate.Cilium{
		Namespace:   chart.ReleaseNamespace,
		Version:     c.Cilium.Version,
		Mode:        c.Cilium.Mode,
		ClusterName: c.Identity.Name,
		ClusterID:   c.Identity.ID,
		Routing:     c.Cilium.Routing,
	}
	args.Verifies["cilium"] = pulumi.String(c.Cilium.Version)
	args.Verifies["network"] = pulumi.String(c.fingerprints.network)
}

// gateFor returns the arguments of a gate that waits for machines, and that accepts others, which join later. The gate runs again
// when the configuration of the machines changes.
func (c *chain) gateFor(machines, later []cluster.Machine) *readiness.ReadinessGateArgs {
	args := &readiness.ReadinessGateArgs{
		Cluster:         c.Identity.Name,
		Kubeconfig:      c.talos.Kubeconfig,
		Talosconfig:     c.talos.Talosconfig,
		Machines:        c.talos.Machines(),
		Nodes:           c.expected(machines),
		Others:          c.expected(later),
		Network:         &gate.Network{PodCIDRs: texts(c.Network.PodCIDRs()), ServiceCIDRs: texts(c.Network.ServiceCIDRs())},
		Versions:        &gate.Versions{Talos: c.Talos.Version, Kubernetes: c.Kubernetes.Version},
		Installer:       c.talos.Installer(),
		Services:        c.Talos.ExtensionServices(),
		Verifies:        map[string]pulumi.Input{"machines": pulumi.String(c.fingerprints.machines)},
		Timeout:         c.Readiness.Timeout.Duration,
		CommandProvider: c.providers.command,
	}
	if c.fingerprints.secretPatches != "" {
		args.Secrets = map[string]pulumi.Input{"secretPatches": pulumi.String(c.fingerprints.secretPatches)}
	}
	return args
}

// expected returns machines in the gate's form.
func (c *chain) expected(machines []cluster.Machine) []gate.Machine {
	var all []gate.Machine
	for _, machine := range machines {
		one := gate.Machine{
			Name: machine.Name, Role: machine.Role, Address: machine.Address.String(),
			Labels: machine.Labels, Taints: machineconfig.Taints(c.Cluster, machine),
		}
		if machine.Address6.IsValid() {
			one.Address6 = machine.Address6.String()
		}
		all = append(all, one)
	}
	return all
}

func texts[T fmt.Stringer](values []T) []string {
	var texts []string
	for _, value := range values {
		texts = append(texts, value.String())
	}
	return texts
}
