package talos

import (
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/machineconfig"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
)

// What a cluster gets that states nothing else.
const (
	DefaultFactory       = "https://factory.talos.dev"
	DefaultISODatastore  = "local"
	DefaultDiskDatastore = "local-lvm"
	DefaultBridge        = "vmbr0"
	DefaultProbe         = "go run ./components/readiness/cmd/slipway-probe"
)

// agentExtension makes Talos answer Proxmox's guest agent channel. The channel is open exactly when it is declared:
// Proxmox waits in vain for an agent that is not there, and without the channel the extension never gets ready.
const agentExtension = "siderolabs/qemu-guest-agent"

// TalosClusterArgs say what the cluster is made of. All but the providers is known when the program starts.
type TalosClusterArgs struct {
	ClusterName       string              // name of the Talos and Kubernetes cluster; required
	TalosVersion      string              // such as v1.12.7; required
	KubernetesVersion string              // such as v1.35.8, one that this Talos runs; required
	Factory           string              // https URL of the image factory, as the Talos provider has it; "" means DefaultFactory
	Extensions        []string            // official system extensions, such as siderolabs/qemu-guest-agent; optional
	Nodes             []Node              // the machines; the first control plane bootstraps; required
	NodeCIDR          netip.Prefix        // the nodes' network; required
	Gateway           netip.Addr          // default route of the nodes; required
	VIP               netip.Addr          // address of the Kubernetes API, held by one control plane at a time; required
	PodCIDR           netip.Prefix        // required
	ServiceCIDR       netip.Prefix        // required
	Nameservers       []netip.Addr        // resolvers of the nodes; required
	NTP               []string            // time servers; none means Talos's own default
	InstallDisk       string              // device that Talos is installed to; "" means machineconfig.DefaultInstallDisk
	Sysctls           map[string]string   // kernel parameters of every node; optional
	RegistryMirrors   map[string][]string // registry host to mirror URLs, tried in order; optional
	Tags              []string            // tags of the VMs beside the component's own; optional

	// Patches are the user's own patches to the machine configuration, applied last; optional.
	Patches machineconfig.Patches
	// SchedulePodsOnControlPlanes lets ordinary pods run on control planes; default false.
	SchedulePodsOnControlPlanes bool

	ISODatastore  string // Proxmox storage for the boot image; "" means DefaultISODatastore
	DiskDatastore string // Proxmox storage for disks and cloud-init drives; "" means DefaultDiskDatastore
	Bridge        string // Linux bridge or SDN VNet; "" means DefaultBridge
	VLAN          int    // VLAN tag, 1 to 4094; 0 is untagged

	// Probe is the command line that runs slipway-probe, whose subcommand bootstrap creates etcd; "" means DefaultProbe.
	Probe string

	// ProxmoxAPI is what the Proxmox provider is configured with. With it, a VM that an interrupted run has left behind
	// unconfigured is removed before it is made anew; nil means that such a VM has to be removed by hand.
	ProxmoxAPI *reclaim.API

	ProxmoxProvider pulumi.ProviderResource // required
	TalosProvider   pulumi.ProviderResource // required
	CommandProvider pulumi.ProviderResource // required
}

// Node is one machine.
type Node struct {
	Name      string             // host name and Kubernetes node name, unique; required
	Role      machineconfig.Role // required
	Host      string             // Proxmox node it runs on; required
	VMID      int                // Proxmox VM id, unique, 100 to 999999999; required
	MAC       string             // MAC address, unique; required
	Address   netip.Addr         // static address in NodeCIDR, unique; required
	Cores     int                // CPU cores; required
	MemoryMiB int                // memory; required
	DiskGiB   int                // system disk; required
	Labels    map[string]string  // Kubernetes node labels; optional
	Taints    map[string]string  // Kubernetes node taints, key to VALUE:EFFECT or EFFECT; optional
	Patches   []string           // the user's own patches for this node, applied after all others; optional
}

// withDefaults returns a copy in which every optional value is set.
func (a TalosClusterArgs) withDefaults() TalosClusterArgs {
	fill := func(value *string, fallback string) {
		if *value == "" {
			*value = fallback
		}
	}
	fill(&a.Factory, DefaultFactory)
	fill(&a.ISODatastore, DefaultISODatastore)
	fill(&a.DiskDatastore, DefaultDiskDatastore)
	fill(&a.Bridge, DefaultBridge)
	fill(&a.InstallDisk, machineconfig.DefaultInstallDisk)
	fill(&a.Probe, DefaultProbe)
	return a
}

// agent tells whether the guest agent runs on the machines.
func (a TalosClusterArgs) agent() bool {
	for _, extension := range a.Extensions {
		if extension == agentExtension {
			return true
		}
	}
	return false
}

// controlPlanes returns the control planes in the order of declaration.
func (a TalosClusterArgs) controlPlanes() []Node {
	var nodes []Node
	for _, node := range a.Nodes {
		if node.Role == machineconfig.ControlPlane {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// cluster is what the nodes' machine configurations have in common.
func (a TalosClusterArgs) cluster() machineconfig.Cluster {
	return machineconfig.Cluster{
		Name: a.ClusterName, TalosVersion: a.TalosVersion, KubernetesVersion: a.KubernetesVersion,
		VIP: a.VIP, NodeCIDR: a.NodeCIDR, Gateway: a.Gateway, PodCIDR: a.PodCIDR, ServiceCIDR: a.ServiceCIDR,
		Nameservers: a.Nameservers, NTP: a.NTP, InstallDisk: a.InstallDisk, Sysctls: a.Sysctls,
		RegistryMirrors: a.RegistryMirrors, Patches: a.Patches,
		SchedulePodsOnControlPlanes: a.SchedulePodsOnControlPlanes,
	}
}

// config is what the node has for itself in its machine configuration.
func (n Node) config() machineconfig.Node {
	return machineconfig.Node{
		Name: n.Name, Role: n.Role, Address: n.Address, MAC: n.MAC, Labels: n.Labels, Taints: n.Taints, Patches: n.Patches,
	}
}

// addresses are the nodes' addresses, in order.
func addresses(nodes []Node) []string {
	list := make([]string, len(nodes))
	for i, node := range nodes {
		list[i] = node.Address.String()
	}
	return list
}
