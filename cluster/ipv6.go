package cluster

import (
	"fmt"
	"net/netip"
)

// IPv6 is the second family of a dual-stack cluster. IPv4 is the primary family and is first everywhere; the
// Kubernetes API's address, Network.VIP, is IPv4. Every machine has an address of both families.
type IPv6 struct {
	// The machines' network.
	NodeCIDR netip.Prefix `json:"nodeCIDR" config:"required" form:"ipv6-network" bits:"32-120" example:"fd25:11::/64"`
	// Default route of the machines, in `network.ipv6.nodeCIDR` or link-local.
	Gateway netip.Addr `json:"gateway" config:"required" form:"ipv6-router" example:"fd25:11::1"`
	// The pods' network. Each node gets a /64 of it if its length is /48 to /56; otherwise it gets the share that Kubernetes
	// allows.
	PodCIDR netip.Prefix `json:"podCIDR" config:"required" form:"ipv6-network" bits:"32-112" example:"fd25:11:1::/56"`
	// The Services' network. The cluster's DNS is its tenth address.
	ServiceCIDR netip.Prefix `json:"serviceCIDR" config:"required" form:"ipv6-network" bits:"108-124" example:"fd25:11:2::/112"`
	// DNS servers of the machines, after `network.nameservers`.
	Nameservers []netip.Addr `json:"nameservers" form:"ipv6-address" example:"[\"2620:fe::fe\"]"`
	// The pool of IPv6 addresses for Services of type LoadBalancer. Without it, they get no IPv6 address.
	LoadBalancers *IPv6LoadBalancers `json:"loadBalancers"`
}

// IPv6LoadBalancers is the pool of IPv6 addresses for Services of type LoadBalancer.
type IPv6LoadBalancers struct {
	// First address of the pool.
	Start netip.Addr `json:"start" config:"required" form:"ipv6-address" example:"fd25:11::1:0"`
	// Last address of the pool. It is part of the pool.
	Stop netip.Addr `json:"stop" config:"required" form:"ipv6-address" example:"fd25:11::1:ff"`
}

const ipv6Path = "network.ipv6"

// Limits of Kubernetes for the share of the IPv6 pod network that a node gets (--node-cidr-mask-size-ipv6).
const (
	usualNodeBits6   = 64  // the default
	longestNodeBits6 = 120 // leaves a node as many addresses as an IPv4 /24
	mostNodesBits6   = 16  // the share is at most 16 bits longer than the pod network: 65536 nodes
	fewestNodesBits6 = 8   // at least 256 nodes
)

// NodeBits returns the prefix length of a node's share of the pod network: Kubernetes's default if it allows 256 nodes and is
// within Kubernetes's limit, otherwise the smallest share within the limit.
func (n IPv6) NodeBits() int {
	bits := n.PodCIDR.Bits()
	if bits+fewestNodesBits6 <= usualNodeBits6 && bits+mostNodesBits6 >= usualNodeBits6 {
		return usualNodeBits6
	}
	return min(bits+mostNodesBits6, longestNodeBits6)
}

func (p IPv6LoadBalancers) contains(address netip.Addr) bool {
	return p.Start.IsValid() && p.Stop.IsValid() && between(address, p.Start, p.Stop)
}

// ipv6 checks the second family. The machines' addresses are checked with the machines.
func (c *addressCheck) ipv6() {
	n := c.Network.IPv6
	if n == nil {
		return
	}
	c.disjoint([]named{
		{ipv6Path + ".nodeCIDR", n.NodeCIDR}, {ipv6Path + ".podCIDR", n.PodCIDR}, {ipv6Path + ".serviceCIDR", n.ServiceCIDR},
	})
	if n.PodCIDR.IsValid() {
		c.podShares(ipv6Path+".podCIDR", n.PodCIDR, n.NodeBits())
	}
	if gateway := n.Gateway; !gateway.IsLinkLocalUnicast() { // routers usually have a link-local address, which is in no network
		c.outsidePool6(ipv6Path+".gateway", gateway)
		c.address6(ipv6Path+".gateway", gateway)
	}
	c.loadBalancers6()
}

// address6 checks an address of the machines' IPv6 network, which must be unique.
func (c *addressCheck) address6(path string, address netip.Addr) {
	if c.inside6(path, address) {
		c.taken.take("address", path, address.String(), c.Findings)
	}
}

// inside6 reports whether the address is usable in the machines' IPv6 network. If not, it adds a problem.
func (c *addressCheck) inside6(path string, address netip.Addr) bool {
	network := c.Network.IPv6.NodeCIDR
	switch {
	case !address.IsValid():
		return false
	case !network.IsValid():
		return true
	case !network.Contains(address):
		c.Found(path, fmt.Sprintf("pick an address in %s", network), "%s is outside %s.nodeCIDR", address, ipv6Path)
	case address == network.Addr():
		c.Found(path, "pick another address", "%s is the address of %s.nodeCIDR that every router of it has", address, ipv6Path)
	default:
		return true
	}
	return false
}

func (c *addressCheck) loadBalancers6() {
	pool := c.Network.IPv6.LoadBalancers
	if pool == nil {
		return
	}
	const path = ipv6Path + ".loadBalancers"
	start := c.inside6(path+".start", pool.Start)
	stop := c.inside6(path+".stop", pool.Stop)
	if start && stop && pool.Stop.Less(pool.Start) {
		c.Found(path+".stop", "swap them", "%s is before %s.start %s", pool.Stop, path, pool.Start)
	}
}

// outsidePool6 checks that an address is not in the pool for Services.
func (c *addressCheck) outsidePool6(path string, address netip.Addr) {
	pool := c.Network.IPv6.LoadBalancers
	if pool != nil && address.IsValid() && pool.contains(address) {
		c.Found(path, "pick an address outside of it, or move the pool", "%s is in the pool %s.loadBalancers, %s to %s",
			address, ipv6Path, pool.Start, pool.Stop)
	}
}

// nodeAddress6 checks a machine's address of the second family, which must be given exactly if the cluster is dual-stack.
func (c *addressCheck) nodeAddress6(path string, address netip.Addr) {
	switch {
	case c.Network.IPv6 == nil && address.IsValid() && !c.Unusable("network"):
		c.Found(path, "add the section network.ipv6, or remove the address", "%s is IPv6, and the cluster is not dual-stack", address)
	case c.Network.IPv6 == nil, c.Unusable(ipv6Path):
	case !address.IsValid():
		c.Found(path, "add it, because network.ipv6 makes the cluster dual-stack", "is missing")
	default:
		c.outsidePool6(path, address)
		c.address6(path, address)
	}
}
