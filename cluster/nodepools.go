package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// NodePool is a set of machines of one role and size. The number of control planes in all pools is odd, unless
// `lifecycle.allowEvenControlPlanes` is set. The first control plane bootstraps the cluster.
type NodePool struct {
	// Name of the pool, unique in the cluster.
	Name string `json:"name" config:"required" form:"label" example:"worker"`
	// Role of its machines.
	Role Role `json:"role" config:"required" example:"worker"`
	// CPU cores of each machine.
	Cores int `json:"cores" config:"required" range:"1-1024" example:"4"`
	// Memory of each machine; a control plane needs at least 2GiB.
	Memory Quantity `json:"memory" config:"required" form:"memory-size" range:"1GiB-" example:"8GiB"`
	// System disk of each machine.
	Disk Quantity `json:"disk" config:"required" form:"disk-size" range:"10GiB-" example:"40GiB"`
	// Proxmox nodes, of `proxmox.nodes`, on which the pool's machines without a `host` are distributed in turn.
	Hosts []string `json:"hosts" form:"proxmox-node" items:"1-" follows:"proxmox.nodes" example:"[pve1, pve2]"`
	// Storage of the machines' disks.
	Datastore string `json:"datastore" form:"proxmox-storage" follows:"proxmox.datastores.disks" example:"nvme"`
	// Linux bridge or SDN VNet of the machines' network device. All pools are in `network.nodeCIDR`.
	Bridge string `json:"bridge" form:"bridge" follows:"proxmox.bridge" example:"vmbr2"`
	// VLAN tag of that device; 0 is untagged.
	VLAN *int `json:"vlan" range:"0-4094" follows:"proxmox.vlan" example:"12"`
	// Tags of the pool's VMs, beside `proxmox.tags` and Slipway's own.
	Tags []string `json:"tags" form:"proxmox-tag" example:"[storage]"`
	// Further disks of each machine. They keep the order of the list: SCSI device 1, 2 and so on.
	DataDisks []DataDisk `json:"dataDisks" items:"0-30"`
	// Kubernetes node labels. Below `kubernetes.io` and `k8s.io`, only labels that a node may set on itself are allowed.
	Labels map[string]string `json:"labels" keys:"node-label-key" form:"node-label-value" example:"{topology.kubernetes.io/zone: rack-1}"`
	// Kubernetes node taints, each as `EFFECT` or `VALUE:EFFECT`. A worker gets them when it registers. The gate names the command for a
	// later change.
	Taints map[string]string `json:"taints" keys:"taint-key" form:"taint" example:"{example.com/storage: \"only:NoSchedule\"}"`
	// The machines of the pool. A pool has either this list or `firstAddress`.
	Nodes []Node `json:"nodes" items:"1-"`
	// Address of the first machine, in place of `nodes`. Each further machine has the next address.
	FirstAddress netip.Addr `json:"firstAddress" form:"ipv4-address" example:"10.25.11.21"`
	// IPv6 address of the first machine, beside `firstAddress`; required with `network.ipv6`, not allowed without.
	FirstAddress6 netip.Addr `json:"firstAddress6" form:"ipv6-address" example:"fd25:11::21"`
	// Number of machines, beside `firstAddress`. A greater number adds machines at the end, a smaller number removes the last machines.
	Count *int `json:"count" range:"1-1000" follows:"1" example:"3"`
}

// Node is one machine.
type Node struct {
	// Host name, and name of the Kubernetes node and of the VM, unique in the cluster. The default has the names of the cluster and of the
	// pool, and the machine's position in the pool, from 1.
	Name string `json:"name" form:"label" follows:"CLUSTER-POOL-N" example:"infra-cp-1"`
	// Proxmox node, of `proxmox.nodes`, that the machine is pinned to. Without it, the machine runs on one of the pool's `hosts`. A
	// change migrates the running machine. A machine that exists is moved only to a node that is written here.
	Host string `json:"host" form:"proxmox-node" example:"pve1"`
	// Proxmox VM id, unique. The default is made of the last two numbers of the address, with three digits each: 10.25.11.21 has 111021.
	VMID int `json:"vmId" range:"100-999999999" follows:"100000 + 1000 × C + D, of the address A.B.C.D" example:"1111"`
	// Generation of the machine. A greater number replaces the machine: `up` removes the node from the cluster as if it were not declared any
	// more, makes the VM anew, and lets it join under the same name. It only grows. One control plane in each run, and as many workers as
	// `lifecycle.maxUnavailable`.
	Generation int `json:"generation" range:"1-1000000" default:"1" example:"2"`
	// Disk encryption that this machine was installed with, where that is not `talos.diskEncryption` (any more). A change of a machine that
	// runs is refused, because Talos would not boot it any more; with a greater generation, the new machine has what is declared.
	DiskEncryption DiskEncryption `json:"diskEncryption" follows:"talos.diskEncryption" example:"none"`
	// MAC address, unique. BC:24:11 is Proxmox's own prefix. The default follows from the names of the cluster and of the machine, by the
	// first three bytes of the SHA-256 of CLUSTER/MACHINE.
	MAC MAC `json:"mac" follows:"BC:24:11:…, by the names" example:"\"BC:24:11:00:01:11\""`
	// Static address in `network.nodeCIDR`, unique.
	Address netip.Addr `json:"address" config:"required" form:"ipv4-address" example:"10.25.11.11"`
	// Static address in `network.ipv6.nodeCIDR`, unique; required with `network.ipv6`, not allowed without.
	Address6 netip.Addr `json:"address6" form:"ipv6-address" example:"fd25:11::11"`
	// Kubernetes node labels of this machine. They override the pool's.
	Labels map[string]string `json:"labels" keys:"node-label-key" form:"node-label-value" example:"{example.com/rack: \"7\"}"`
	// Kubernetes node taints of this machine. They override the pool's.
	Taints map[string]string `json:"taints" keys:"taint-key" form:"taint" example:"{example.com/gpu: NoSchedule}"`
	// Patches to this machine's configuration, after all of `talos.patches`; see there.
	Patches []Patch `json:"patches" example:"[{machine: {sysctls: {vm.nr_hugepages: \"1024\"}}}]"`

	pinned  bool   // Host was declared
	home    string // the Proxmox node without proxmox.maintenance
	counted bool   // the machine is of a pool with firstAddress
}

// Pinned reports whether the stack file names the machine's Proxmox node. Otherwise, the node follows from the machine's position.
func (n Node) Pinned() bool { return n.pinned }

// Home returns the Proxmox node that the machine runs on unless maintenance keeps it away.
func (n Node) Home() string { return n.home }

// DataDisk is a disk of each machine of a pool, beside the system disk.
type DataDisk struct {
	// Name of the disk, unique in the pool.
	Name string `json:"name" config:"required" form:"volume-name" example:"osd-1"`
	// Size of the disk.
	Size Quantity `json:"size" config:"required" form:"disk-size" range:"1GiB-" example:"500GiB"`
	// Storage of the disk.
	Datastore string `json:"datastore" form:"proxmox-storage" follows:"nodePools[].datastore" example:"hdd"`
	// Use of the disk: `raw` is not formatted; `osd` is not formatted either, and Ceph takes the whole of it (`storage.role: provider`);
	// `volume` is a user volume of Talos, formatted and mounted at `/var/mnt/NAME`.
	Use DiskUse `json:"use" default:"raw" example:"volume"`
}

// DiskUse is the use of a data disk.
type DiskUse string

// The uses of a data disk.
const (
	DiskRaw    DiskUse = "raw"
	DiskOSD    DiskUse = "osd"
	DiskVolume DiskUse = "volume"
)

// Choices lists the uses of a data disk.
func (DiskUse) Choices() []string { return texts(DiskRaw, DiskOSD, DiskVolume) }

const (
	minControlPlaneMemory = 2 * GiB // Talos: system requirements
	maxControlPlanes      = 7       // etcd's recommended maximum, because every write goes to a majority of the members
)

func (p *NodePool) derive(proxmox Proxmox) {
	if p.Hosts == nil {
		p.Hosts = slices.Clone(proxmox.Nodes)
	}
	fill(&p.Datastore, proxmox.Datastores.Disks)
	fill(&p.Bridge, proxmox.Bridge)
	fill(&p.VLAN, new(proxmox.VLAN))
	for i := range p.DataDisks {
		fill(&p.DataDisks[i].Datastore, p.Datastore)
	}
}

// setGenerations gives the nodes that are declared in Go without a generation the first one.
func (p *NodePool) setGenerations() {
	for i := range p.Nodes {
		fill(&p.Nodes[i].Generation, 1)
	}
}

// nodePools checks the pools one by one.
func (c clusterCheck) nodePools() {
	for i, pool := range c.NodePools {
		path := ItemPath("nodePools", i)
		c.take("pool", path+".name", pool.Name)
		if pool.Role == ControlPlane && pool.Memory != 0 && pool.Memory < minControlPlaneMemory {
			c.Found(path+".memory", "write at least "+minControlPlaneMemory.String(), "%s is too little for a control plane", pool.Memory)
		}
		hosts := pool.Hosts
		if slices.Equal(hosts, c.Proxmox.Nodes) { // the default; of long lists, the comparison of each with each takes seconds
			hosts = nil
		}
		for j, host := range hosts {
			c.host(ItemPath(path+".hosts", j), host)
		}
		for j, disk := range pool.DataDisks {
			c.take("data disk of "+path, ItemPath(path+".dataDisks", j)+".name", disk.Name)
		}
		for j, node := range pool.Nodes {
			c.node(func(key string) string { return node.pathOf(path, j, key) }, node)
		}
	}
}

// roles checks the number of machines of each role.
func (c clusterCheck) roles() {
	controlPlanes, workers := len(c.ControlPlanes()), len(c.WorkerMachines())
	switch {
	case slices.ContainsFunc(c.NodePools, func(pool NodePool) bool { return pool.Role == "" || len(pool.Nodes) == 0 }): // reported already
	case len(c.NodePools) == 0: // reported already
	case controlPlanes == 0:
		c.Found("nodePools", fmt.Sprintf("declare a pool of role %s with one node, or three", ControlPlane), "have no control plane")
	case controlPlanes%2 == 0 && !c.Lifecycle.AllowEvenControlPlanes:
		c.Found("nodePools", fmt.Sprintf("declare %d or %d, or on the way from one to the other lifecycle.allowEvenControlPlanes: true",
			controlPlanes-1, controlPlanes+1),
			"%d control planes tolerate no more failures than %d would", controlPlanes, controlPlanes-1)
	case controlPlanes > maxControlPlanes:
		c.Found("nodePools", "declare 3, 5 or 7, and the others as workers",
			"%d control planes are too many: every write of etcd waits for a majority of them", controlPlanes)
	case workers == 0 && !c.Kubernetes.AllowSchedulingOnControlPlanes:
		c.Found("nodePools", "declare a worker, or set kubernetes.allowSchedulingOnControlPlanes: true",
			"have no worker, so that nothing would run Flux and the workloads")
	case workers == 0 && c.Workers.Join == JoinAfterGate:
		c.Found("workers.join", "declare a worker, or remove the key", "%s is for workers, and there is none", c.Workers.Join)
	case len(c.PodMachines()) == 0:
		c.Found("nodePools", "declare a machine without such a taint",
			"taint every machine that takes pods NoSchedule or NoExecute, so that nothing would run Flux and the workloads")
	}
}

// PodMachines returns the machines that accept ordinary pods.
func (c *Cluster) PodMachines() []Machine {
	machines := c.WorkerMachines()
	if c.Kubernetes.AllowSchedulingOnControlPlanes {
		machines = c.Machines()
	}
	return withoutTaints(machines)
}

// withoutTaints returns the machines without a declared taint that prevents pods.
func withoutTaints(machines []Machine) []Machine {
	return slices.DeleteFunc(machines, func(machine Machine) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(machine.Taints)), keepsPodsAway)
	})
}

// keepsPodsAway reports whether a taint, VALUE:EFFECT or EFFECT, prevents pods that do not tolerate it from running on a node.
func keepsPodsAway(taint string) bool {
	effect := taint[strings.LastIndex(taint, ":")+1:]
	return effect == "NoSchedule" || effect == "NoExecute"
}

func (c clusterCheck) host(path, host string) {
	if host != "" && len(c.Proxmox.Nodes) > 0 && !slices.Contains(c.Proxmox.Nodes, host) {
		c.Found(path, OneOf(host, c.Proxmox.Nodes), "%s is not among proxmox.nodes", host)
	}
}

func (c clusterCheck) node(path func(key string) string, node Node) {
	c.take("node", path("name"), node.Name)
	if node.pinned { // otherwise it is one of the pool's hosts, which are checked with the pool
		c.host(path("host"), node.home)
	}
	if node.VMID != 0 {
		c.take("VM id", path("vmId"), strconv.Itoa(node.VMID))
	}
	c.take("MAC", path("mac"), string(node.MAC))
	if f := c.Network.ipv4(); c.outsidePool(f, path("address"), node.Address) {
		c.address(f, path("address"), node.Address)
	}
	c.nodeAddress6(path("address6"), node.Address6)
}
