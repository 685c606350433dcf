package readiness

import (
	"encoding/json"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// Declared returns the arguments of a gate over machines of a declared cluster, which accepts others that join after it. Those that are
// left out are not judged. The gate runs again when the configuration of the cluster's machines changes. The credentials, the machines'
// resources, the installer, the leaves and the provider are the caller's to add, and Cilium, once it is installed.
func Declared(c *cluster.Cluster, machines, others []cluster.Machine) *ReadinessGateArgs {
	args := &ReadinessGateArgs{
		Steps:    component.Steps{Name: c.Identity.Name, Skip: c.Lifecycle.Skip},
		Nodes:    machinesFor(c, c.Serving(machines)),
		Others:   machinesFor(c, c.Serving(others)),
		Network:  &gate.Network{PodCIDRs: c.Network.PodCIDRs(), ServiceCIDRs: c.Network.ServiceCIDRs()},
		Versions: &gate.Versions{Talos: c.Talos.Version, Kubernetes: c.Kubernetes.Version},
		Services: c.Talos.ExtensionServices(),
		Verifies: map[string]pulumi.Input{"machines": pulumi.String(machinesOf(c))},
		Timeout:  c.Readiness.Timeout.Duration,
		Approve:  c.Kubernetes.MetricsServer,
	}
	if c.Lifecycle.Snapshots.Scheduled {
		args.Backup = &gate.Backup{Bucket: c.BucketOfSnapshots()}
	}
	// Secret, because a short secret can be guessed from its checksum.
	if patches := c.TalosSecretPatches.Reveal(); patches != "" {
		args.Secrets = map[string]pulumi.Input{"secretPatches": pulumi.String(checksum(patches))}
	}
	return args
}

// machinesFor returns machines in the gate's form.
func machinesFor(c *cluster.Cluster, machines []cluster.Machine) []gate.Machine {
	var all []gate.Machine
	for _, machine := range machines {
		all = append(all, gate.Machine{
			Name: machine.Name, Role: machine.Role, Address: machine.Address, Address6: machine.Address6,
			Labels: machine.Labels, Taints: machineconfig.Taints(c, machine),
		})
	}
	return all
}

// machinesOf returns a checksum of the configuration of the machines, without the secret patches.
func machinesOf(c *cluster.Cluster) string {
	pools := slices.Clone(c.NodePools)
	for i := range pools {
		pools[i].Hosts = nil // where new machines would go
	}
	return checksum([]any{c.Network, pools, c.Talos, c.Kubernetes})
}

// checksum returns a part of the checksum of a value of the model, which can always be written as JSON.
func checksum(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("readiness: a part of the cluster cannot be written: " + err.Error())
	}
	return cluster.Checksum(string(text))
}
