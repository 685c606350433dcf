package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/talos"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/machineconfig"
	"github.com/slipway-platform/slipway/stacks/config"
)

// workersFollow tells whether the workers are made only once the control plane has passed the gate.
func (p *plan) workersFollow() bool { return p.stack.WorkerPolicy.Join == config.JoinAfterGate }

func (c *chain) talos() *talos.TalosClusterArgs {
	s := c.stack
	args := &talos.TalosClusterArgs{
		ClusterName:                 s.Cluster.Name,
		TalosVersion:                s.Talos.Version,
		KubernetesVersion:           s.Kubernetes.Version,
		Factory:                     s.Talos.Factory,
		Extensions:                  s.Talos.Extensions,
		Region:                      s.Proxmox.Cluster,
		LLDPD:                       string(s.Talos.LLDPD.Config),
		NodeCIDR:                    s.Network.NodeCIDR,
		Gateway:                     s.Network.Gateway,
		VIP:                         s.Network.VIP,
		PodCIDR:                     s.Network.PodCIDR,
		ServiceCIDR:                 s.Network.ServiceCIDR,
		IPv6:                        ipv6(s.Network.IPv6),
		Nameservers:                 s.Network.Nameservers,
		NTP:                         s.Network.NTP,
		InstallDisk:                 s.Talos.InstallDisk,
		DiskEncryption:              machineconfig.DiskEncryption(s.Talos.DiskEncryption),
		Kubelet:                     machineconfig.Kubelet{MaxPods: s.Talos.Kubelet.MaxPods, ExtraArgs: s.Talos.Kubelet.ExtraArgs},
		Sysctls:                     s.Talos.Sysctls,
		RegistryMirrors:             s.Talos.RegistryMirrors,
		KeepImageLayers:             s.Spegel.Enabled.On(), // Spegel serves them to the other nodes
		DisableCoreDNS:              true,                  // the core services bring it
		SchedulePodsOnControlPlanes: s.Kubernetes.AllowSchedulingOnControlPlanes,
		Patches: machineconfig.Patches{
			All:           texts(s.Talos.Patches.All),
			ControlPlanes: texts(s.Talos.Patches.ControlPlanes),
			Workers:       texts(s.Talos.Patches.Workers),
		},
		ISODatastore: s.Proxmox.Datastores.ISO,
		ProxmoxAPI: &reclaim.API{
			Endpoint: s.Proxmox.Endpoint,
			Token:    s.ProxmoxAPIToken.Reveal(), // unset, it comes from the environment, as for the provider
			Insecure: s.Proxmox.Insecure,
		},
		DependsOn:       []pulumi.Resource{c.mode},
		ProxmoxProvider: c.providers.proxmox,
		TalosProvider:   c.providers.talos,
		CommandProvider: c.providers.command,
	}
	args.Nodes, args.Joining = machines(s.ControlPlanes()), machines(s.Workers())
	if !c.workersFollow() {
		args.Nodes, args.Joining = append(args.Nodes, args.Joining...), nil
	}
	if c.inline() {
		args.InlineManifests = []talos.InlineManifest{{Name: cilium.InlineManifestName, Contents: c.network.InlineManifests}}
	}
	return args
}

func machines(nodes []config.PoolNode) []talos.Node {
	var machines []talos.Node
	for _, node := range nodes {
		machines = append(machines, talos.Node{
			Name:      node.Name,
			Role:      machineconfig.Role(node.Pool.Role),
			Host:      node.Host,
			VMID:      node.VMID,
			MAC:       string(node.MAC),
			Address:   node.Address,
			Address6:  node.Address6,
			Cores:     node.Pool.Cores,
			MemoryMiB: node.Pool.Memory.MiB(),
			DiskGiB:   node.Pool.Disk.GiB(),
			DataDisks: dataDisks(node.DataDisks),
			Datastore: node.Datastore,
			Bridge:    node.Bridge,
			VLAN:      node.VLAN,
			Tags:      node.Tags,
			Labels:    node.Labels,
			Taints:    node.Taints,
			Patches:   texts(node.Patches),
		})
	}
	return machines
}

func dataDisks(disks []config.DataDisk) []talos.DataDisk {
	var all []talos.DataDisk
	for _, disk := range disks {
		all = append(all, talos.DataDisk{
			Name: disk.Name, SizeGiB: disk.Size.GiB(), Datastore: disk.Datastore, Use: machineconfig.DiskUse(disk.Use),
		})
	}
	return all
}

func ipv6(network *config.IPv6) *talos.IPv6 {
	if network == nil {
		return nil
	}
	return &talos.IPv6{
		NodeCIDR: network.NodeCIDR, Gateway: network.Gateway, PodCIDR: network.PodCIDR, ServiceCIDR: network.ServiceCIDR,
		Nameservers: network.Nameservers,
	}
}

func texts(patches []config.Patch) []string {
	var texts []string
	for _, patch := range patches {
		texts = append(texts, patch.String())
	}
	return texts
}
