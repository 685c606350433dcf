package talos

import (
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// Node is one machine.
type Node struct {
	Name      string             // host name and Kubernetes node name, unique; required
	Role      machineconfig.Role // required
	Host      string             // Proxmox node it runs on, with TalosClusterArgs.Region its topology zone; required
	VMID      int                // Proxmox VM id, unique, 100 to 999999999; required
	MAC       string             // MAC address, unique; required
	Address   netip.Addr         // static address in NodeCIDR, unique; required
	Address6  netip.Addr         // static address in IPv6.NodeCIDR, unique; required with IPv6
	Cores     int                // CPU cores; required
	MemoryMiB int                // memory; required
	DiskGiB   int                // system disk; required
	DataDisks []DataDisk         // further disks, scsi1 and on in this order; optional
	Labels    map[string]string  // Kubernetes node labels; optional
	Taints    map[string]string  // Kubernetes node taints, key to VALUE:EFFECT or EFFECT; optional
	Patches   []string           // the user's own patches for this node, applied after all others; optional
	Tags      []string           // tags of the VM beside the cluster's; optional
	Datastore string             // Proxmox storage for its disks and cloud-init drive; "" means the cluster's
	Bridge    string             // Linux bridge or SDN VNet; "" means the cluster's
	VLAN      int                // VLAN tag, 1 to 4094; 0 means the cluster's
}

// DataDisk is a disk beside the system disk. Its place on the bus is its place in the list: add new ones at the end.
type DataDisk struct {
	Name      string                // 1 to 34 letters, digits and hyphens, unique on the node; required
	SizeGiB   int                   // required
	Datastore string                // Proxmox storage; "" means the node's
	Use       machineconfig.DiskUse // "" means machineconfig.RawDisk
}

// withDefaults returns a copy in which every optional value is set that the cluster has one for.
func (n Node) withDefaults(a TalosClusterArgs) Node {
	fill(&n.Datastore, a.DiskDatastore)
	fill(&n.Bridge, a.Bridge)
	if n.VLAN == 0 {
		n.VLAN = a.VLAN
	}
	n.DataDisks = slices.Clone(n.DataDisks)
	for i := range n.DataDisks {
		fill(&n.DataDisks[i].Datastore, n.Datastore)
	}
	return n
}

// config is what the node has for itself in its machine configuration.
func (n Node) config() machineconfig.Node {
	config := machineconfig.Node{
		Name: n.Name, Role: n.Role, Address: n.Address, Address6: n.Address6, MAC: n.MAC, Zone: n.Host,
		Labels: n.Labels, Taints: n.Taints, Patches: n.Patches,
	}
	for _, disk := range n.DataDisks {
		config.DataDisks = append(config.DataDisks, machineconfig.DataDisk{Name: disk.Name, Use: disk.Use})
	}
	return config
}

// addresses are the nodes' addresses, in order.
func addresses(nodes []Node) []string {
	list := make([]string, len(nodes))
	for i, node := range nodes {
		list[i] = node.Address.String()
	}
	return list
}

func fill(value *string, fallback string) {
	if *value == "" {
		*value = fallback
	}
}
