package talos

import (
	"net/netip"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// What a cluster gets that states nothing else.
const (
	DefaultFactory       = "https://factory.talos.dev"
	DefaultISODatastore  = "local"
	DefaultDiskDatastore = "local-lvm"
	DefaultBridge        = "vmbr0"
)

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
	InstallDisk       string              // device that Talos is installed to; "" means the first SCSI disk
	Sysctls           map[string]string   // kernel parameters of every node; optional
	RegistryMirrors   map[string][]string // registry host to mirror URLs, tried in order; optional
	Tags              []string            // tags of the VMs beside the component's own; optional
	IPv6              *IPv6               // the second family of a dual-stack cluster; nil means IPv4 only
	Region            string              // label topology.kubernetes.io/region of the nodes, whose zone is the Host; "" means neither
	LLDPD             string              // lldpd.conf of the extension siderolabs/lldpd; "" means machineconfig.DefaultLLDPD

	// Joining are workers that NewTalosCluster leaves to Join. They are checked with the Nodes, their hosts get the boot
	// image with the others, and the talosconfig speaks of them from the start; optional.
	Joining []Node
	// InlineManifests are what Talos applies once the API answers; optional. It does so with the bootstrap and with each
	// upgrade of Kubernetes, and takes nothing back: this is to start a cluster, not to keep it.
	InlineManifests []InlineManifest
	// Kubelet is what every node's kubelet is told; optional.
	Kubelet machineconfig.Kubelet
	// DiskEncryption is how STATE and EPHEMERAL are encrypted, from when the machine is made; "" means none. With
	// machineconfig.EncryptTPM a VM gets a TPM and boots by SecureBoot.
	DiskEncryption machineconfig.DiskEncryption
	// KeepImageLayers has containerd keep what images are made of, for Spegel to hand on; default false.
	KeepImageLayers bool
	// DisableCoreDNS has Talos deploy no cluster DNS, for somebody else does; default false.
	DisableCoreDNS bool

	// Patches are the user's own patches to the machine configuration, applied last; optional.
	Patches machineconfig.Patches
	// SchedulePodsOnControlPlanes lets ordinary pods run on control planes; default false.
	SchedulePodsOnControlPlanes bool

	ISODatastore  string // Proxmox storage for the boot image; "" means DefaultISODatastore
	DiskDatastore string // Proxmox storage for disks and cloud-init drives; "" means DefaultDiskDatastore
	Bridge        string // Linux bridge or SDN VNet; "" means DefaultBridge
	VLAN          int    // VLAN tag, 1 to 4094; 0 is untagged

	// ProxmoxAPI is what the Proxmox provider is configured with. With it, a VM that an interrupted run has left behind
	// unconfigured is removed before it is made anew; nil means that such a VM has to be removed by hand.
	ProxmoxAPI *reclaim.API

	// DependsOn must be there before any machine is given its configuration, or shown with it; by leaf; optional.
	DependsOn []pulumi.Resource

	ProxmoxProvider pulumi.ProviderResource // required
	TalosProvider   pulumi.ProviderResource // required
	CommandProvider pulumi.ProviderResource // required
}

// IPv6 is the second family of a dual-stack cluster.
type IPv6 = machineconfig.IPv6

// InlineManifest is a text of Kubernetes manifests that comes with the control planes' machine configuration.
type InlineManifest struct {
	Name     string             // unique among the cluster's; required
	Contents pulumi.StringInput // YAML documents; treated as secret; required
}

// withDefaults returns a copy in which every optional value is set.
func (a TalosClusterArgs) withDefaults() TalosClusterArgs {
	fill(&a.Factory, DefaultFactory)
	fill(&a.ISODatastore, DefaultISODatastore)
	fill(&a.DiskDatastore, DefaultDiskDatastore)
	fill(&a.Bridge, DefaultBridge)
	a.Nodes, a.Joining = slices.Clone(a.Nodes), slices.Clone(a.Joining)
	for _, nodes := range [][]Node{a.Nodes, a.Joining} {
		for i := range nodes {
			nodes[i] = nodes[i].withDefaults(a)
		}
	}
	return a
}

// extensions are the declared extensions, with what is known of them.
func (a TalosClusterArgs) extensions() machineconfig.Extensions { return a.Extensions }

// secureBoot tells whether the machines boot by SecureBoot: Talos seals keys in a TPM for signed images alone.
func (a TalosClusterArgs) secureBoot() bool { return a.DiskEncryption == machineconfig.EncryptTPM }

// all are the nodes of the finished cluster.
func (a TalosClusterArgs) all() []Node { return slices.Concat(a.Nodes, a.Joining) }

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
		IPv6:                        a.IPv6, Region: a.Region, Kubelet: a.Kubelet, DiskEncryption: a.DiskEncryption,
		Extensions: a.extensions(), LLDPD: a.LLDPD, KeepImageLayers: a.KeepImageLayers, DisableCoreDNS: a.DisableCoreDNS,
	}
}
