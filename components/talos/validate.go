package talos

import (
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/slipway-platform/slipway/components/talos/machineconfig"
)

// validate returns every problem of the arguments, Talos's own judgement of the machine configurations included.
func (a TalosClusterArgs) validate() error {
	var p problems
	p.check(a.ClusterName != "", "clusterName: empty; name the cluster")
	if factory, err := url.Parse(a.Factory); err != nil || factory.Scheme != "https" || factory.Host == "" {
		p.add("factory: %q is not an https URL; write it like %s", a.Factory, DefaultFactory)
	}
	p.check(a.ProxmoxProvider != nil, "proxmoxProvider: nil; pass an explicit provider")
	p.check(a.TalosProvider != nil, "talosProvider: nil; pass an explicit provider")
	p.check(a.CommandProvider != nil, "commandProvider: nil; pass an explicit provider")
	p.check(a.VLAN >= 0 && a.VLAN <= 4094, "vlan: %d is out of range; use 1 to 4094, or 0 for untagged", a.VLAN)

	before := len(p)
	a.validateNetwork(&p)
	a.validateNodes(&p)
	if len(p) == before { // without addresses there is nothing to render
		p.addAll(a.validateConfigurations())
	}
	return errors.Join(p...)
}

func (a TalosClusterArgs) validateNetwork(p *problems) {
	for path, prefix := range map[string]interface {
		IsValid() bool
		String() string
	}{"nodeCIDR": a.NodeCIDR, "podCIDR": a.PodCIDR, "serviceCIDR": a.ServiceCIDR} {
		p.check(prefix.IsValid(), "%s: unset; give the network in CIDR form", path)
	}
	if !a.NodeCIDR.IsValid() {
		return
	}
	p.check(a.NodeCIDR.Contains(a.VIP), "vip: %s is not in nodeCIDR %s; give a free address of that network", a.VIP, a.NodeCIDR)
	p.check(a.NodeCIDR.Contains(a.Gateway), "gateway: %s is not in nodeCIDR %s", a.Gateway, a.NodeCIDR)
	p.check(len(a.Nameservers) > 0, "nameservers: none; give at least one address")
	if a.PodCIDR.IsValid() && a.ServiceCIDR.IsValid() {
		p.check(!a.PodCIDR.Overlaps(a.ServiceCIDR), "podCIDR: %s overlaps serviceCIDR %s; pick disjoint ranges", a.PodCIDR, a.ServiceCIDR)
		p.check(!a.PodCIDR.Overlaps(a.NodeCIDR), "podCIDR: %s overlaps nodeCIDR %s; pick disjoint ranges", a.PodCIDR, a.NodeCIDR)
		p.check(!a.ServiceCIDR.Overlaps(a.NodeCIDR), "serviceCIDR: %s overlaps nodeCIDR %s; pick disjoint ranges", a.ServiceCIDR, a.NodeCIDR)
	}
}

func (a TalosClusterArgs) validateNodes(p *problems) {
	p.check(len(a.controlPlanes())%2 == 1, "nodes: %d control planes; an odd number keeps etcd's quorum, use 1, 3 or 5", len(a.controlPlanes()))

	taken := map[string]string{} // what must be unique, and by which node it is used
	unique := func(node, what string, value any) {
		key := fmt.Sprintf("%s %v", what, value)
		if other, ok := taken[key]; ok {
			p.add("nodes: %s: %s is %s's already; each needs its own", node, key, other)
			return
		}
		taken[key] = node
	}
	unique("vip", "address", a.VIP)
	unique("gateway", "address", a.Gateway)
	for i, n := range a.Nodes {
		at := fmt.Sprintf("nodes[%d] %s", i, n.Name)
		p.check(n.Name != "", "%s: name: empty", at)
		p.check(n.Role == machineconfig.ControlPlane || n.Role == machineconfig.Worker,
			"%s: role: %q; use %s or %s", at, n.Role, machineconfig.ControlPlane, machineconfig.Worker)
		p.check(n.Host != "", "%s: host: empty; name the Proxmox node", at)
		p.check(n.VMID >= 100 && n.VMID <= 999999999, "%s: vmId: %d; use 100 to 999999999", at, n.VMID)
		p.check(a.NodeCIDR.Contains(n.Address), "%s: address: %s is not in nodeCIDR %s", at, n.Address, a.NodeCIDR)
		mac, err := net.ParseMAC(n.MAC)
		p.check(err == nil && len(mac) == 6, "%s: mac: %q is not a MAC address; write it like BC:24:11:00:01:0B", at, n.MAC)
		p.check(n.Cores > 0, "%s: cores: %d; use at least 1", at, n.Cores)
		p.check(n.MemoryMiB >= 1024, "%s: memoryMiB: %d; Talos needs at least 1024", at, n.MemoryMiB)
		p.check(n.DiskGiB >= 10, "%s: diskGiB: %d; Talos needs at least 10", at, n.DiskGiB)
		unique(at, "name", n.Name)
		unique(at, "vmId", n.VMID)
		unique(at, "mac", mac)
		unique(at, "address", n.Address)
	}
}

func (a TalosClusterArgs) validateConfigurations() error {
	nodes := make([]machineconfig.Node, len(a.Nodes))
	for i, node := range a.Nodes {
		nodes[i] = node.config()
	}
	return machineconfig.Validate(a.cluster(), nodes)
}

// problems collects what is wrong, so that all of it is reported at once.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) addAll(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.add(format, args...)
	}
}
