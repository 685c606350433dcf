package talos

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"github.com/slipway-platform/slipway/internal/machineconfig"
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
	a.validateIPv6(&p)
	a.validateNodes(&p)
	a.validateManifests(&p)
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

// validateIPv6 checks the second family like the first, and that each part of it is of that family.
func (a TalosClusterArgs) validateIPv6(p *problems) {
	f := a.IPv6
	if f == nil {
		return
	}
	ranges := []struct {
		path  string
		value netip.Prefix
	}{{"ipv6.nodeCIDR", f.NodeCIDR}, {"ipv6.podCIDR", f.PodCIDR}, {"ipv6.serviceCIDR", f.ServiceCIDR}}
	for i, one := range ranges {
		p.check(one.value.IsValid() && one.value.Addr().Is6(), "%s: %s is no IPv6 network; give one in CIDR form", one.path, one.value)
		for _, other := range ranges[:i] {
			p.check(!one.value.Overlaps(other.value), "%s: %s overlaps %s %s; pick disjoint ranges", one.path, one.value, other.path, other.value)
		}
	}
	p.check(f.NodeCIDR.Contains(f.Gateway) || f.Gateway.Is6() && f.Gateway.IsLinkLocalUnicast(),
		"ipv6.gateway: %s is neither in ipv6.nodeCIDR %s nor link-local", f.Gateway, f.NodeCIDR)
}

// validateManifests checks the names: the texts are known only later.
func (a TalosClusterArgs) validateManifests(p *problems) {
	seen := map[string]bool{}
	for i, manifest := range a.InlineManifests {
		p.check(manifest.Name != "", "inlineManifests[%d]: name: empty", i)
		p.check(!seen[manifest.Name], "inlineManifests[%d]: name: %s is taken; each needs its own", i, manifest.Name)
		p.check(manifest.Contents != nil, "inlineManifests[%d] %s: contents: nil; give the manifests", i, manifest.Name)
		seen[manifest.Name] = true
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
		a.validateNode(p, fmt.Sprintf("nodes[%d] %s", i, n.Name), n, unique)
	}
	for i, n := range a.Joining {
		at := fmt.Sprintf("joining[%d] %s", i, n.Name)
		p.check(n.Role == machineconfig.Worker, "%s: role: %s; only a %s can join later", at, n.Role, machineconfig.Worker)
		a.validateNode(p, at, n, unique)
	}
}

func (a TalosClusterArgs) validateNode(p *problems, at string, n Node, unique func(node, what string, value any)) {
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
	p.check(n.VLAN >= 0 && n.VLAN <= 4094, "%s: vlan: %d is out of range; use 1 to 4094, or 0 for the cluster's", at, n.VLAN)
	p.check(len(n.DataDisks) <= mostDataDisks, "%s: dataDisks: %d; a SCSI bus has places for %d beside the system disk", at, len(n.DataDisks), mostDataDisks)
	for i, disk := range n.DataDisks {
		p.check(disk.SizeGiB > 0, "%s: dataDisks[%d] %s: sizeGiB: %d; use at least 1", at, i, disk.Name, disk.SizeGiB)
	}
	unique(at, "name", n.Name)
	unique(at, "vmId", n.VMID)
	unique(at, "mac", mac)
	unique(at, "address", n.Address)
	switch {
	case a.IPv6 == nil:
		p.check(!n.Address6.IsValid(), "%s: address6: %s, but the cluster has no ipv6; declare it, or drop the address", at, n.Address6)
	case !a.IPv6.NodeCIDR.Contains(n.Address6) || n.Address6 == a.IPv6.Gateway:
		p.add("%s: address6: %s is no free address of ipv6.nodeCIDR %s", at, n.Address6, a.IPv6.NodeCIDR)
	default:
		unique(at, "address6", n.Address6)
	}
}

// mostDataDisks is Proxmox's limit of SCSI disks, less one.
const mostDataDisks = 30

func (a TalosClusterArgs) validateConfigurations() error {
	var nodes []machineconfig.Node
	for _, node := range a.all() {
		nodes = append(nodes, node.config())
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
