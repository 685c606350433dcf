package cluster

import (
	"net/netip"
	"strings"
)

// lastAddress returns the last address of a network. In an IPv4 network it is the broadcast address, which no machine can have.
func lastAddress(network netip.Prefix) netip.Addr {
	last := network.Masked().Addr().AsSlice()
	for bit := network.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(last)
	return address
}

// family is what a cluster declares of one address family. What is missing is invalid.
type family struct {
	path                  string // key of the section: network, or network.ipv6
	nodes, pods, services netip.Prefix
	start, stop           netip.Addr // first and last address of the pool for Services
}

// families returns the families of the cluster, IPv4 first.
func (n Network) families() []family {
	if n.IPv6 == nil {
		return []family{n.ipv4()}
	}
	return []family{n.ipv4(), n.IPv6.family()}
}

func (n Network) ipv4() family {
	return family{
		path: "network", nodes: n.NodeCIDR, pods: n.PodCIDR, services: n.ServiceCIDR,
		start: n.LoadBalancers.Start, stop: n.LoadBalancers.Stop,
	}
}

// named is a network and its key.
type named struct {
	path    string
	network netip.Prefix
}

// networks returns the networks of the machines, the pods and the Services.
func (f family) networks() []named {
	return []named{{f.path + ".nodeCIDR", f.nodes}, {f.path + ".podCIDR", f.pods}, {f.path + ".serviceCIDR", f.services}}
}

// pools reports whether the address is in the pool for Services.
func (f family) pools(address netip.Addr) bool {
	return f.start.IsValid() && f.stop.IsValid() && address.BitLen() == f.start.BitLen() &&
		f.start.Compare(address) <= 0 && address.Compare(f.stop) <= 0
}

// noHost describes the special address of the machines' network that no host can have; "" if it is none.
func (f family) noHost(address netip.Addr) string {
	switch {
	case !f.nodes.IsValid():
	case address == f.nodes.Addr() && address.Is6():
		return "the address that every router of " + f.path + ".nodeCIDR has"
	case address == f.nodes.Addr():
		return "the network address of " + f.path + ".nodeCIDR"
	case address == lastAddress(f.nodes) && address.Is4():
		return "the broadcast address of " + f.path + ".nodeCIDR"
	}
	return ""
}

// take adds a problem if another path has the same value of a kind, such as "VM id". People confuse what differs in case only.
func (c clusterCheck) take(kind, path, value string) {
	if value == "" {
		return
	}
	key := kind + " " + strings.ToLower(value)
	if owner, taken := c.taken[key]; taken {
		c.Found(path, "pick another", "%s is taken by %s", value, owner)
		return
	}
	c.taken[key] = path
}
