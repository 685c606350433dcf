// Package config is the configuration of one Slipway stack: its model, its defaults, its strict loading and its
// validation. It imports no Pulumi, so that the program, its tests and a check by hand load a stack file the same way.
//
// The exported structs mirror what a stack file says. A top-level key of the project's namespace ("slipway:cluster")
// is a field of Stack; below that, the json tag is the key's name, exactly, case included.
package config

import "net/netip"

// Stack is the whole configuration of one stack, defaults filled in, validated.
type Stack struct {
	// Name is the Pulumi stack's name, such as "infra". It is not a key of the file.
	Name string `json:"-"`

	Cluster    Cluster    `json:"cluster" config:"required"`   // required
	Proxmox    Proxmox    `json:"proxmox" config:"required"`   // required
	Network    Network    `json:"network" config:"required"`   // required
	NodePools  []NodePool `json:"nodePools" config:"required"` // required; in order: the first control plane is the one that bootstraps
	Talos      Talos      `json:"talos"`                       // optional
	Kubernetes Kubernetes `json:"kubernetes"`                  // optional
	Cilium     Cilium     `json:"cilium"`                      // optional
	GitOps     GitOps     `json:"gitops" config:"required"`    // required
	Readiness  Readiness  `json:"readiness"`                   // optional
	Storage    Storage    `json:"storage"`                     // optional

	// GitPassword is the password or token of GitOps.Username; required, secret.
	GitPassword Secret `json:"gitPassword"`
	// ProxmoxAPIToken is USER@REALM!TOKENID=UUID; secret. Unset means that the Proxmox provider reads the environment
	// variable PROXMOX_VE_API_TOKEN.
	ProxmoxAPIToken Secret `json:"proxmoxApiToken"`
}

// Cluster identifies the cluster, to Talos, to Kubernetes clients and in Cilium's mesh.
type Cluster struct {
	Name string `json:"name" config:"required"` // lower-case RFC 1123 label of at most 32 characters (Cilium's rule); required
	ID   int    `json:"id" config:"required"`   // 1 to 255, different in every cluster of a mesh; required
}

// Proxmox is the Proxmox VE cluster that the machines run on.
type Proxmox struct {
	Endpoint   string     `json:"endpoint" config:"required"` // https URL of the API, such as https://pve.home.arpa:8006/; required
	Nodes      []string   `json:"nodes" config:"required"`    // names of the Proxmox nodes that may run machines; required
	Datastores Datastores `json:"datastores"`                 // optional
	Bridge     string     `json:"bridge"`                     // Linux bridge or SDN VNet of the machines' network device; default vmbr0
	VLAN       int        `json:"vlan"`                       // VLAN tag of that device, 1 to 4094; 0, the default, is untagged
	Tags       []string   `json:"tags"`                       // tags of every VM, beside Slipway's own; optional
	Insecure   bool       `json:"insecure"`                   // skip the verification of the endpoint's certificate; default false
}

// Datastores names the Proxmox storages in use. Both must exist on every one of Proxmox.Nodes.
type Datastores struct {
	ISO   string `json:"iso"`   // holds the Talos boot images; content type iso; default local
	Disks string `json:"disks"` // holds disks, EFI variables and cloud-init drives; content type images; default local-lvm
}

// Network is what the cluster's addresses come from. Talos, Cilium and the cluster settings all read these values.
type Network struct {
	NodeCIDR      netip.Prefix  `json:"nodeCIDR" config:"required"`      // the machines' network; holds every address below; required
	Gateway       netip.Addr    `json:"gateway" config:"required"`       // default route of the machines; required
	VIP           netip.Addr    `json:"vip" config:"required"`           // address of the Kubernetes API, held by one control plane at a time; required
	PodCIDR       netip.Prefix  `json:"podCIDR" config:"required"`       // required
	ServiceCIDR   netip.Prefix  `json:"serviceCIDR" config:"required"`   // required
	Nameservers   []netip.Addr  `json:"nameservers"`                     // default: Gateway
	NTP           []string      `json:"ntp"`                             // time servers, names or addresses; empty means Talos's own default
	LoadBalancers LoadBalancers `json:"loadBalancers" config:"required"` // required
}

// LoadBalancers is the pool of addresses for Services of type LoadBalancer, and the two that are spoken for.
type LoadBalancers struct {
	Start   netip.Addr `json:"start" config:"required"`   // first address of the pool; required
	Stop    netip.Addr `json:"stop" config:"required"`    // last address of the pool, itself included; required
	Mesh    netip.Addr `json:"mesh" config:"required"`    // the mesh API server's, out of the pool; required
	Gateway netip.Addr `json:"gateway" config:"required"` // the gateway's (Envoy), out of the pool; required
}

// NodePool is a set of machines of one role and size.
type NodePool struct {
	Name   string            `json:"name" config:"required"`   // RFC 1123 label, unique in the stack; required
	Role   Role              `json:"role" config:"required"`   // controlplane or worker; required
	Cores  int               `json:"cores" config:"required"`  // CPU cores a machine, 1 to 256; required
	Memory Quantity          `json:"memory" config:"required"` // memory a machine, whole MiB, such as 8GiB; required
	Disk   Quantity          `json:"disk" config:"required"`   // system disk a machine, whole GiB, such as 40GiB; required
	Labels map[string]string `json:"labels"`                   // Kubernetes node labels; optional
	Taints map[string]string `json:"taints"`                   // Kubernetes node taints, key to VALUE:EFFECT or EFFECT; optional
	Nodes  []Node            `json:"nodes" config:"required"`  // required
}

// Node is one machine.
type Node struct {
	Name    string     `json:"name" config:"required"`    // host name and Kubernetes node name; RFC 1123 label, unique; required
	Host    string     `json:"host" config:"required"`    // Proxmox node it runs on, one of Proxmox.Nodes; required
	VMID    int        `json:"vmId" config:"required"`    // Proxmox VM id, 100 to 999999999, unique; required
	MAC     MAC        `json:"mac" config:"required"`     // unicast MAC address, unique; required
	Address netip.Addr `json:"address" config:"required"` // static address in Network.NodeCIDR, unique; required
}

// Talos is the operating system.
type Talos struct {
	Version         string              `json:"version"`         // such as v1.12.7; default DefaultTalosVersion
	Factory         string              `json:"factory"`         // https URL of the image factory; default https://factory.talos.dev
	Extensions      []string            `json:"extensions"`      // official system extensions, such as siderolabs/qemu-guest-agent; default none
	InstallDisk     string              `json:"installDisk"`     // device that Talos is installed to; default /dev/sda
	Sysctls         map[string]string   `json:"sysctls"`         // kernel parameters of every node; optional
	RegistryMirrors map[string][]string `json:"registryMirrors"` // registry host to mirror URLs, tried in order; optional
	Patches         Patches             `json:"patches"`         // optional
}

// Patches are strategic merge patches to the machine configuration, applied last, in order: All before the role's.
type Patches struct {
	All           []Patch `json:"all"`
	ControlPlanes []Patch `json:"controlPlanes"`
	Workers       []Patch `json:"workers"`
}

// Kubernetes is what Talos runs.
type Kubernetes struct {
	Version string `json:"version"` // such as v1.35.8; default DefaultKubernetesVersion

	// AllowSchedulingOnControlPlanes lets ordinary pods run on control planes; default false. A stack without workers
	// needs it.
	AllowSchedulingOnControlPlanes bool `json:"allowSchedulingOnControlPlanes"`
}

// Cilium is the network core's chart.
type Cilium struct {
	Version    string `json:"version"`    // chart version, such as 1.18.7; default DefaultCiliumVersion
	Repository string `json:"repository"` // https URL of the chart repository; default https://helm.cilium.io/
}

// GitOps is what Flux syncs from, and the Flux it is.
type GitOps struct {
	URL      string   `json:"url" config:"required"` // https URL of the Git repository, without credentials; required
	Branch   string   `json:"branch"`                // default main
	Path     string   `json:"path"`                  // folder in the repository, relative; default kubernetes/clusters/STACK
	Username string   `json:"username"`              // user of the Git host that GitPassword belongs to; default flux
	Interval Duration `json:"interval"`              // how often Flux looks for changes; default 1m
	Timeout  Duration `json:"timeout"`               // longest wait for Flux to have applied the tree; default 10m
	Operator Operator `json:"operator"`              // optional
	Flux     Flux     `json:"flux"`                  // optional
}

// Operator is the chart of flux-operator.
type Operator struct {
	Chart   string `json:"chart"`   // OCI reference without a tag; default oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator
	Version string `json:"version"` // chart version; default DefaultFluxOperatorVersion
}

// Flux is the distribution that flux-operator installs.
type Flux struct {
	Version  string `json:"version"`  // exact version, such as 2.9.5, or range, such as 2.9.x; default DefaultFluxVersion
	Registry string `json:"registry"` // registry and path of the controllers' images; default ghcr.io/fluxcd
}

// Readiness is the readiness gate.
type Readiness struct {
	Timeout Duration `json:"timeout"` // longest wait for all checks together; default 10m
}

// Storage is the cluster's part in the shared storage.
type Storage struct {
	Role StorageRole `json:"role"` // none, provider or consumer; default none
}

// Nodes returns every machine of the stack, control planes first, each role in the file's order.
func (s *Stack) Nodes() []PoolNode {
	return append(s.nodes(RoleControlPlane), s.nodes(RoleWorker)...)
}

// ControlPlanes returns the control planes in the file's order. The first bootstraps etcd.
func (s *Stack) ControlPlanes() []PoolNode { return s.nodes(RoleControlPlane) }

// Workers returns the workers in the file's order.
func (s *Stack) Workers() []PoolNode { return s.nodes(RoleWorker) }

// PoolNode is a machine together with the pool that gives its role and size.
type PoolNode struct {
	Node
	Pool NodePool
}

func (s *Stack) nodes(role Role) []PoolNode {
	var nodes []PoolNode
	for _, pool := range s.NodePools {
		if pool.Role != role {
			continue
		}
		for _, node := range pool.Nodes {
			nodes = append(nodes, PoolNode{Node: node, Pool: pool})
		}
	}
	return nodes
}
