// Package machineconfig renders the machine configuration of Talos nodes from typed values: as patches to what Talos
// generates from the machine secrets, so that no secret passes through here.
//
// It imports no Pulumi. The program renders and validates with it before it registers anything.
package machineconfig

import "net/netip"

// KubePrismPort is where every node offers the Kubernetes API on its loopback, load-balanced over the control planes.
// It answers before Cilium runs, which is why Cilium is told to use it.
const KubePrismPort = 7445

// DefaultInstallDisk is the device of the first SCSI disk of a VM.
const DefaultInstallDisk = "/dev/sda"

// Role is a machine's type, as Talos spells it.
type Role string

// The roles.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// Cluster is what all nodes of a cluster have in common.
type Cluster struct {
	Name              string              // cluster name
	TalosVersion      string              // such as v1.12.7; its minor is the configuration contract
	KubernetesVersion string              // such as v1.35.8
	VIP               netip.Addr          // address of the Kubernetes API, held by one control plane at a time
	NodeCIDR          netip.Prefix        // the nodes' network
	Gateway           netip.Addr          // default route of the nodes
	PodCIDR           netip.Prefix        // pods' network
	ServiceCIDR       netip.Prefix        // Services' network
	Nameservers       []netip.Addr        // resolvers of the nodes, at least one
	NTP               []string            // time servers, names or addresses; none means Talos's own default
	InstallDisk       string              // device that Talos is installed to; "" means DefaultInstallDisk
	Sysctls           map[string]string   // kernel parameters of every node; optional
	RegistryMirrors   map[string][]string // registry host to mirror URLs, tried in order; optional
	Patches           Patches             // the user's own patches, applied last; optional

	// SchedulePodsOnControlPlanes lets ordinary pods run on control planes; default false.
	SchedulePodsOnControlPlanes bool
}

// Patches are strategic merge patches, YAML or JSON, of one or more documents each. All come before the role's, a
// role's before the node's.
type Patches struct {
	All           []string
	ControlPlanes []string
	Workers       []string
}

// Node is what one node has for itself.
type Node struct {
	Name    string            // host name and Kubernetes node name
	Role    Role              // ControlPlane or Worker
	Address netip.Addr        // static address in Cluster.NodeCIDR
	MAC     string            // MAC address of the network device that gets Address
	Labels  map[string]string // Kubernetes node labels; optional
	Taints  map[string]string // Kubernetes node taints, key to VALUE:EFFECT or EFFECT; optional
	Patches []string          // the user's own patches for this node, applied after all others; optional
}

// Endpoint is the URL of the Kubernetes API.
func (c Cluster) Endpoint() string {
	return "https://" + netip.AddrPortFrom(c.VIP, 6443).String()
}

func (c Cluster) installDisk() string {
	if c.InstallDisk == "" {
		return DefaultInstallDisk
	}
	return c.InstallDisk
}

// userPatches are the user's patches for a node, in the order of application, with where each comes from.
func (c Cluster) userPatches(n Node) []userPatch {
	var patches []userPatch
	add := func(path string, list []string) {
		for i, text := range list {
			patches = append(patches, userPatch{path: indexed(path, i), text: text})
		}
	}
	add("patches.all", c.Patches.All)
	if n.Role == ControlPlane {
		add("patches.controlPlanes", c.Patches.ControlPlanes)
	} else {
		add("patches.workers", c.Patches.Workers)
	}
	add("node patches", n.Patches)
	return patches
}

// userPatch is one of the user's patches; path says where it was declared.
type userPatch struct{ path, text string }
