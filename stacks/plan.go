package stacks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/readiness/health"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/components/talos"
	"github.com/slipway-platform/slipway/components/talos/machineconfig"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/stacks/config"
)

// plan is a stack's configuration, turned into what the components want as far as that is known before they exist.
type plan struct {
	stack  *config.Stack
	nodes  []health.Node
	values cilium.Values
	git    *secrets.GitCredentials

	machines string // fingerprint of what the machines are made from
	network  string // fingerprint of Cilium's values, certificates apart
}

// newPlan checks the shapes of what it plans; the rest is checked by the components' constructors.
func newPlan(stack *config.Stack) (*plan, error) {
	p := &plan{
		stack: stack,
		values: cilium.Values{
			ClusterName:   stack.Cluster.Name,
			ClusterID:     stack.Cluster.ID,
			PodCIDR:       stack.Network.PodCIDR,
			KubePrismPort: machineconfig.KubePrismPort,
		},
		git: &secrets.GitCredentials{
			Namespace: gitops.Namespace,
			Name:      gitCredentials,
			Username:  stack.GitOps.Username,
			Password:  stack.GitPassword.Reveal(),
		},
	}
	for _, node := range stack.Nodes() {
		p.nodes = append(p.nodes, health.Node{
			Name: node.Name, Role: health.Role(node.Pool.Role), Address: node.Address.String(),
		})
	}
	tree, err := p.values.Render(cilium.Keys{})
	if err := errors.Join(p.git.Validate(), err); err != nil {
		return nil, err
	}
	if p.network, err = fingerprint(tree); err != nil {
		return nil, err
	}
	p.machines, err = fingerprint(struct {
		Network    config.Network
		NodePools  []config.NodePool
		Talos      config.Talos
		Kubernetes config.Kubernetes
	}{stack.Network, stack.NodePools, stack.Talos, stack.Kubernetes})
	return p, err
}

// gitCredentials is the name of the Secret that Flux's sync pulls with.
const gitCredentials = "flux-system"

// fingerprint changes when anything of a value does.
func fingerprint(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

func (p *plan) talos(providers *providers) *talos.TalosClusterArgs {
	s := p.stack
	args := &talos.TalosClusterArgs{
		ClusterName:                 s.Cluster.Name,
		TalosVersion:                s.Talos.Version,
		KubernetesVersion:           s.Kubernetes.Version,
		Factory:                     s.Talos.Factory,
		Extensions:                  s.Talos.Extensions,
		NodeCIDR:                    s.Network.NodeCIDR,
		Gateway:                     s.Network.Gateway,
		VIP:                         s.Network.VIP,
		PodCIDR:                     s.Network.PodCIDR,
		ServiceCIDR:                 s.Network.ServiceCIDR,
		Nameservers:                 s.Network.Nameservers,
		NTP:                         s.Network.NTP,
		InstallDisk:                 s.Talos.InstallDisk,
		Sysctls:                     s.Talos.Sysctls,
		RegistryMirrors:             s.Talos.RegistryMirrors,
		Tags:                        s.Proxmox.Tags,
		SchedulePodsOnControlPlanes: s.Kubernetes.AllowSchedulingOnControlPlanes,
		Patches: machineconfig.Patches{
			All:           texts(s.Talos.Patches.All),
			ControlPlanes: texts(s.Talos.Patches.ControlPlanes),
			Workers:       texts(s.Talos.Patches.Workers),
		},
		ISODatastore:  s.Proxmox.Datastores.ISO,
		DiskDatastore: s.Proxmox.Datastores.Disks,
		Bridge:        s.Proxmox.Bridge,
		VLAN:          s.Proxmox.VLAN,
		ProxmoxAPI: &reclaim.API{
			Endpoint: s.Proxmox.Endpoint,
			Token:    s.ProxmoxAPIToken.Reveal(), // unset, it comes from the environment, as for the provider
			Insecure: s.Proxmox.Insecure,
		},
		ProxmoxProvider: providers.proxmox,
		TalosProvider:   providers.talos,
		CommandProvider: providers.command,
	}
	for _, node := range s.Nodes() {
		args.Nodes = append(args.Nodes, talos.Node{
			Name:      node.Name,
			Role:      machineconfig.Role(node.Pool.Role),
			Host:      node.Host,
			VMID:      node.VMID,
			MAC:       string(node.MAC),
			Address:   node.Address,
			Cores:     node.Pool.Cores,
			MemoryMiB: node.Pool.Memory.MiB(),
			DiskGiB:   node.Pool.Disk.GiB(),
			Labels:    node.Pool.Labels,
			Taints:    node.Pool.Taints,
		})
	}
	return args
}

func texts(patches []config.Patch) []string {
	var texts []string
	for _, patch := range patches {
		texts = append(texts, patch.String())
	}
	return texts
}

// machinesGate passes once the API answers and every machine has registered: without a CNI no node is Ready yet.
func (p *plan) machinesGate(cluster *talos.TalosCluster, providers *providers) *readiness.ReadinessGateArgs {
	args := p.anyGate(cluster, providers)
	args.DependsOn = cluster.Leaves()
	args.Verifies = map[string]pulumi.Input{"machines": pulumi.String(p.machines)}
	return args
}

// gate passes once the whole cluster is healthy, and runs again when the machines or the network core change.
func (p *plan) gate(cluster *talos.TalosCluster, network *cilium.CiliumCore, providers *providers) *readiness.ReadinessGateArgs {
	args := p.anyGate(cluster, providers)
	args.Cilium = &health.Cilium{Namespace: cilium.ReleaseNamespace, Version: p.stack.Cilium.Version}
	args.DependsOn = append(cluster.Leaves(), network.Release())
	args.Verifies = map[string]pulumi.Input{
		"cilium":   pulumi.String(p.stack.Cilium.Version),
		"machines": pulumi.String(p.machines),
		"network":  pulumi.String(p.network),
	}
	return args
}

func (p *plan) anyGate(cluster *talos.TalosCluster, providers *providers) *readiness.ReadinessGateArgs {
	return &readiness.ReadinessGateArgs{
		Cluster:         p.stack.Cluster.Name,
		Kubeconfig:      cluster.Kubeconfig,
		Talosconfig:     cluster.Talosconfig,
		Nodes:           p.nodes,
		Timeout:         p.stack.Readiness.Timeout.Duration,
		CommandProvider: providers.command,
	}
}

func (p *plan) cilium(cluster *talos.TalosCluster, machines *readiness.ReadinessGate, providers *providers) *cilium.CiliumCoreArgs {
	return &cilium.CiliumCoreArgs{
		Values:             p.values,
		Version:            p.stack.Cilium.Version,
		Repository:         p.stack.Cilium.Repository,
		KubernetesProvider: providers.kubernetes,
		TLSProvider:        providers.tls,
		DependsOn:          []pulumi.Resource{machines.Probe()},
		DeletedWith:        cluster.Bootstrap(),
	}
}

func (p *plan) secrets(cluster *talos.TalosCluster, gate *readiness.ReadinessGate, providers *providers) *secrets.SecretsFoundationArgs {
	return &secrets.SecretsFoundationArgs{
		Git:                p.git,
		KubernetesProvider: providers.kubernetes,
		DependsOn:          []pulumi.Resource{gate.Probe()},
		DeletedWith:        cluster.Bootstrap(),
	}
}

func (p *plan) gitops(cluster *talos.TalosCluster, gate *readiness.ReadinessGate, foundation *secrets.SecretsFoundation, providers *providers) *gitops.GitOpsHandoverArgs {
	g := p.stack.GitOps
	return &gitops.GitOpsHandoverArgs{
		Cluster:    p.stack.Cluster.Name,
		Kubeconfig: cluster.Kubeconfig,
		Operator:   gitops.Operator{Chart: g.Operator.Chart, Version: g.Operator.Version},
		Flux:       gitops.Flux{Version: g.Flux.Version, Registry: g.Flux.Registry},
		Sync: gitops.Sync{
			URL: g.URL, Branch: g.Branch, Path: g.Path, PullSecret: gitCredentials, Interval: g.Interval.Duration,
		},
		Settings:           settings(p.stack),
		Timeout:            g.Timeout.Duration,
		KubernetesProvider: providers.kubernetes,
		CommandProvider:    providers.command,
		DependsOn:          append(foundation.Leaves(), gate.Probe()),
		DeletedWith:        cluster.Bootstrap(),
	}
}
