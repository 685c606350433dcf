package stacks

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/machineconfig"
	"github.com/slipway-platform/slipway/stacks/config"
)

// machinesGate covers the machines that are made before Cilium.
func (c *chain) machinesGate() *readiness.ReadinessGateArgs {
	args := c.firstGate()
	args.DependsOn = c.cluster.Leaves()
	args.Verifies = map[string]pulumi.Input{"machines": pulumi.String(c.machinesPrint)}
	return args
}

// healthGate covers the same machines, and Cilium on them.
func (c *chain) healthGate() *readiness.ReadinessGateArgs {
	args := c.firstGate()
	args.DependsOn = slices.Concat(c.cluster.Leaves(), c.network.Leaves(), []pulumi.Resource{c.machines.Probe()})
	c.verifyNetwork(args)
	return args
}

// workersGate covers the whole cluster, once the workers that follow the control plane have joined.
func (c *chain) workersGate(joined []pulumi.Resource) *readiness.ReadinessGateArgs {
	args := c.anyGate()
	args.Nodes = expected(c.stack.Nodes())
	args.DependsOn = slices.Concat(joined, []pulumi.Resource{c.gate.Probe()})
	c.verifyNetwork(args)
	return args
}

// firstGate covers what is made first: every machine, or the control planes alone.
func (c *chain) firstGate() *readiness.ReadinessGateArgs {
	args := c.anyGate()
	if c.workersFollow() {
		args.Nodes, args.Others = expected(c.stack.ControlPlanes()), expected(c.stack.Workers())
	} else {
		args.Nodes = expected(c.stack.Nodes())
	}
	return args
}

// verifyNetwork has the gate run again when the machines or the network core change.
func (c *chain) verifyNetwork(args *readiness.ReadinessGateArgs) {
	args.Cilium = &gate.Cilium{
		Namespace:   cilium.ReleaseNamespace,
		Version:     c.stack.Cilium.Version,
		Mode:        string(c.stack.Cilium.Mode),
		ClusterName: c.stack.Cluster.Name,
		ClusterID:   c.stack.Cluster.ID,
		Routing:     string(c.stack.Cilium.Routing),
	}
	args.Verifies = map[string]pulumi.Input{
		"cilium":   pulumi.String(c.stack.Cilium.Version),
		"machines": pulumi.String(c.machinesPrint),
		"network":  pulumi.String(c.networkPrint),
	}
}

func (c *chain) anyGate() *readiness.ReadinessGateArgs {
	return &readiness.ReadinessGateArgs{
		Cluster:         c.stack.Cluster.Name,
		Kubeconfig:      c.cluster.Kubeconfig,
		Talosconfig:     c.cluster.Talosconfig,
		Network:         &gate.Network{PodCIDRs: spelt(podCIDRs(c.stack.Network)), ServiceCIDRs: spelt(serviceCIDRs(c.stack.Network))},
		Services:        machineconfig.Extensions(c.stack.Talos.Extensions).Services(),
		Timeout:         c.stack.Readiness.Timeout.Duration,
		CommandProvider: c.providers.command,
	}
}

// expected are the nodes as a gate looks for them.
func expected(nodes []config.PoolNode) []gate.Machine {
	var all []gate.Machine
	for _, node := range nodes {
		one := gate.Machine{Name: node.Name, Role: cluster.Role(node.Pool.Role), Address: node.Address.String()}
		if node.Address6.IsValid() {
			one.Address6 = node.Address6.String()
		}
		all = append(all, one)
	}
	return all
}
