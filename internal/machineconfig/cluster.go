// Package machineconfig renders the machine configuration of Talos nodes from typed values. It renders patches to the configuration
// that Talos generates from the machine secrets, so it needs none of these secrets. It imports no Pulumi: the program renders and
// validates before it registers anything.
//
// # What the user's patches may set
//
// CheckPatches assembles the configuration without the user's patches, and again after each of them, and compares. The rule:
//
//   - What Slipway or Talos has set stays. A patch may not change or remove a value that is there without the user's patches, except a
//     few defaults of Talos that nothing relies on, such as the audit policy.
//   - A document that Slipway renders, such as HostnameConfig, stays as a whole: a patch may add nothing to it.
//   - A patch may add what the table allowances names: further kernel parameters, labels, mirrors, files, mounts, flags that only tune
//     a component, links, volumes and so on. It may add nothing else. A list may get further items.
//   - Some additions are checked for what they do. A volume must be on a disk that the stack does not declare. A link must leave the
//     machine's network device and the cluster's networks alone. A mount must not hide a directory that Talos fills.
//
// What is compared is the result. How a patch is written makes no difference: by deletion, by another name of the same setting, or by
// another document.
package machineconfig

import (
	"maps"
	"net/netip"

	"github.com/slipway-platform/slipway/cluster"
)

// KubePrismPort is the port on the loopback address of every node at which KubePrism offers the Kubernetes API, load-balanced over
// the control planes. It answers before Cilium runs, so Cilium uses it.
const KubePrismPort = 7445

// HostDNSForwarding tells whether CoreDNS forwards to Talos's own DNS cache, at an address of the host. It does not: with BPF
// masquerading, Cilium does not reach that address. Cilium's values are rendered from this constant, so they always agree.
const HostDNSForwarding = false

// DefaultInstallDisk is the device of the first SCSI disk of a VM.
const DefaultInstallDisk = "/dev/sda"

// Role is a machine's type.
type Role = cluster.Role

// The roles.
const (
	ControlPlane = cluster.ControlPlane
	Worker       = cluster.Worker
)

// Cluster holds what all nodes of a cluster have in common.
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
	IPv6              *IPv6               // the second family of a dual-stack cluster; nil means IPv4 only
	Region            string              // label topology.kubernetes.io/region of the nodes; "" means no topology labels
	Kubelet           Kubelet             // settings of every node's kubelet; optional
	DiskEncryption    DiskEncryption      // how STATE and EPHEMERAL are encrypted; "" means EncryptNone
	Extensions        Extensions          // system extensions of the image, such as siderolabs/lldpd; optional
	LLDPD             string              // lldpd.conf of the extension siderolabs/lldpd; "" means DefaultLLDPD
	InlineManifests   []string            // names of the inline manifests that the program adds; optional
	SecretPatches     Patches             // as Patches, and applied after them at each level; the texts are secret; optional

	// SchedulePodsOnControlPlanes lets ordinary pods run on control planes; default false.
	SchedulePodsOnControlPlanes bool
	// KeepImageLayers makes containerd keep the layers of images, so that Spegel can serve them to other nodes; default false.
	KeepImageLayers bool
	// DisableCoreDNS makes Talos deploy no cluster DNS, because the core services deploy it; default false.
	DisableCoreDNS bool
}

// Kubelet holds settings of kubelet.
type Kubelet struct {
	MaxPods   int               // most pods on a node, up to MaxPodsPerNode; 0 means Kubernetes' default, 110
	ExtraArgs map[string]string // kubelet flags without dashes; optional
}

// MaxPodsPerNode is the largest number of pods that a node has IPv4 addresses for. A node's range is a /24 by Kubernetes' default, of
// which Cilium uses a few addresses itself.
const MaxPodsPerNode = 250

// Patches are strategic merge patches, YAML or JSON, of one or more documents each. Those of All are applied first, then those of the
// role, then those of the node.
type Patches struct {
	All           []string
	ControlPlanes []string
	Workers       []string
}

// Node holds what belongs to one node.
type Node struct {
	Name    string            // host name and Kubernetes node name
	Role    Role              // ControlPlane or Worker
	Address netip.Addr        // static address in Cluster.NodeCIDR
	MAC     string            // MAC address of the network device that gets Address
	Labels  map[string]string // Kubernetes node labels; optional
	Taints  map[string]string // Kubernetes node taints, key to VALUE:EFFECT or EFFECT; optional
	Patches []string          // the user's own patches for this node, applied after all others; optional

	Address6  netip.Addr // static address in Cluster.IPv6.NodeCIDR; required with Cluster.IPv6
	Zone      string     // label topology.kubernetes.io/zone, with Cluster.Region; "" means none
	DataDisks []DataDisk // disks beside the system disk, SCSI devices 1 and on; optional
}

// Endpoint is the URL of the Kubernetes API.
func (c Cluster) Endpoint() string {
	return "https://" + netip.AddrPortFrom(c.VIP, 6443).String()
}

// installDisk returns the device of the system disk. With several disks it is the name by the place on the bus, because the kernel
// names the disks sda and sdb in the order in which they answer.
func (c Cluster) installDisk(n Node) string {
	disk := c.InstallDisk
	if disk == "" {
		disk = DefaultInstallDisk
	}
	if disk == DefaultInstallDisk && len(n.DataDisks) > 0 {
		return scsiDevice(0)
	}
	return disk
}

// labels returns the node's labels: those of the topology, then the node's own, which take precedence.
func (c Cluster) labels(n Node) map[string]string {
	if c.Region == "" {
		return n.Labels
	}
	labels := map[string]string{"topology.kubernetes.io/region": c.Region}
	if n.Zone != "" {
		labels["topology.kubernetes.io/zone"] = n.Zone
	}
	maps.Copy(labels, n.Labels)
	return labels
}

// userPatches are the user's patches for a node, in the order of application.
func (c Cluster) userPatches(n Node) []userPatch {
	return append(c.sharedPatches(n.Role), n.ownPatches()...)
}

// sharedPatches are those of the user's patches that the cluster declares for a role, in the order of application.
func (c Cluster) sharedPatches(role Role) []userPatch {
	var patches []userPatch
	add := func(path string, secret bool, list []string) {
		for i, text := range list {
			patches = append(patches, userPatch{path: indexed(path, i), text: text, secret: secret})
		}
	}
	add(plainPatches+".all", false, c.Patches.All)
	add(secretPatches+".all", true, c.SecretPatches.All)
	if role == ControlPlane {
		add(plainPatches+".controlPlanes", false, c.Patches.ControlPlanes)
		add(secretPatches+".controlPlanes", true, c.SecretPatches.ControlPlanes)
	} else {
		add(plainPatches+".workers", false, c.Patches.Workers)
		add(secretPatches+".workers", true, c.SecretPatches.Workers)
	}
	return patches
}

// ownPatches are those of the user's patches that a node declares.
func (n Node) ownPatches() []userPatch {
	var patches []userPatch
	for i, text := range n.Patches {
		patches = append(patches, userPatch{path: indexed("node patches", i), node: n.Name, text: text})
	}
	return patches
}

// The keys of the stack that declare patches.
const (
	plainPatches  = "talos.patches"
	secretPatches = "talosSecretPatches"
)

// userPatch is one of the user's patches.
type userPatch struct {
	path   string // the key that declares it, such as talos.patches.all[0], or "node patches[0]"
	node   string // the node that declares it; "" if the cluster does
	text   string // YAML or JSON
	secret bool   // the text is a secret
}
