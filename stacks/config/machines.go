package config

import "net/netip"

// NodePool is a set of machines of one role and size.
type NodePool struct {
	Name      string            `json:"name" config:"required"`   // RFC 1123 label, unique in the stack; required
	Role      Role              `json:"role" config:"required"`   // controlplane or worker; required
	Cores     int               `json:"cores" config:"required"`  // CPU cores a machine, 1 to 1024; required
	Memory    Quantity          `json:"memory" config:"required"` // memory a machine, whole MiB, such as 8GiB; required
	Disk      Quantity          `json:"disk" config:"required"`   // system disk a machine, whole GiB, such as 40GiB; required
	Hosts     []string          `json:"hosts"`                    // Proxmox nodes that the machines without a host of their own take turns on; default Proxmox.Nodes
	Datastore string            `json:"datastore"`                // Proxmox storage of the machines' disks; default Proxmox.Datastores.Disks
	Bridge    string            `json:"bridge"`                   // Linux bridge or SDN VNet of the machines' network device; default Proxmox.Bridge
	VLAN      *int              `json:"vlan"`                     // VLAN tag of that device, 1 to 4094, or 0 for untagged; default Proxmox.VLAN
	Tags      []string          `json:"tags"`                     // tags of the pool's VMs, beside Proxmox.Tags and Slipway's own; optional
	DataDisks []DataDisk        `json:"dataDisks"`                // further disks of each machine; optional
	Labels    map[string]string `json:"labels"`                   // Kubernetes node labels; optional
	Taints    map[string]string `json:"taints"`                   // Kubernetes node taints, key to VALUE:EFFECT or EFFECT; optional
	Nodes     []Node            `json:"nodes" config:"required"`  // the machines; required
}

// Node is one machine.
type Node struct {
	Name     string            `json:"name" config:"required"`    // host name and Kubernetes node name; RFC 1123 label, unique; required
	Host     string            `json:"host"`                      // Proxmox node it is pinned to, one of Proxmox.Nodes; default: its turn among the pool's hosts
	VMID     int               `json:"vmId" config:"required"`    // Proxmox VM id, 100 to 999999999, unique; required
	MAC      MAC               `json:"mac" config:"required"`     // unicast MAC address, unique; required
	Address  netip.Addr        `json:"address" config:"required"` // static address in Network.NodeCIDR, unique; required
	Address6 netip.Addr        `json:"address6"`                  // static address in Network.IPv6.NodeCIDR, unique; required in a dual-stack cluster, an error in any other
	Labels   map[string]string `json:"labels"`                    // Kubernetes node labels, over the pool's; optional
	Taints   map[string]string `json:"taints"`                    // Kubernetes node taints, over the pool's; optional
	Patches  []Patch           `json:"patches"`                   // strategic merge patches to this machine's configuration, after all others; optional

	pinned bool // Host was given
}

// DataDisk is a disk of each machine of a pool, beside the one that Talos is installed to.
type DataDisk struct {
	Name      string   `json:"name" config:"required"` // 1 to 34 letters, digits and -, unique in the pool; required
	Size      Quantity `json:"size" config:"required"` // whole GiB, such as 100GiB; required
	Datastore string   `json:"datastore"`              // Proxmox storage; default: the pool's
	Use       DiskUse  `json:"use"`                    // raw: left alone, for storage operators; volume: formatted and mounted at /var/mnt/NAME; default raw
}

// WorkerPolicy is what holds for all workers.
type WorkerPolicy struct {
	Join WorkerJoin `json:"join"` // parallel: with the control plane; afterGate: once the readiness gate has passed on the control plane, and a second gate covers them; default parallel
}

// Talos is the operating system.
type Talos struct {
	Version         string              `json:"version"`         // such as v1.12.7; default DefaultTalosVersion
	Factory         string              `json:"factory"`         // https URL of the image factory; default https://factory.talos.dev
	Extensions      []string            `json:"extensions"`      // official system extensions, such as siderolabs/qemu-guest-agent; default none
	LLDPD           LLDPD               `json:"lldpd"`           // configuration of the extension siderolabs/lldpd; optional
	InstallDisk     string              `json:"installDisk"`     // device that Talos is installed to; default /dev/sda
	DiskEncryption  DiskEncryption      `json:"diskEncryption"`  // of Talos's STATE, EPHEMERAL and user volumes: none, nodeID (key from the machine's id) or tpm (key in a virtual TPM); default none
	Kubelet         Kubelet             `json:"kubelet"`         // optional
	Sysctls         map[string]string   `json:"sysctls"`         // kernel parameters of every node; optional
	RegistryMirrors map[string][]string `json:"registryMirrors"` // registry host to mirror URLs, tried in order; optional
	Patches         Patches             `json:"patches"`         // optional
}

// LLDPD is the configuration of the lldpd extension.
type LLDPD struct {
	Config Text `json:"config"` // lldpd.conf; only with the extension siderolabs/lldpd; default: the component's
}

// Kubelet is the kubelet of every node.
type Kubelet struct {
	MaxPods   int               `json:"maxPods"`   // pods a node, 1 to 250; 0, the default, is Kubernetes's own, 110
	ExtraArgs map[string]string `json:"extraArgs"` // flags of the kubelet, without their dashes; optional
}

// Patches are strategic merge patches to the machine configuration, applied last, in order: All, the role's, the node's.
type Patches struct {
	All           []Patch `json:"all"`           // of every machine; optional
	ControlPlanes []Patch `json:"controlPlanes"` // of control planes; optional
	Workers       []Patch `json:"workers"`       // of workers; optional
}
