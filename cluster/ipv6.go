package cluster

import "net/netip"

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

// family returns the second family.
func (n IPv6) family() family {
	f := family{path: ipv6Path, nodes: n.NodeCIDR, pods: n.PodCIDR, services: n.ServiceCIDR}
	if n.LoadBalancers != nil {
		f.start, f.stop = n.LoadBalancers.Start, n.LoadBalancers.Stop
	}
	return f
}

// ipv6 checks the second family. The machines' addresses are checked with the machines.
func (c clusterCheck) ipv6() {
	n := c.Network.IPv6
	if n == nil {
		return
	}
	f := n.family()
	c.disjoint(f.networks())
	if n.PodCIDR.IsValid() {
		c.podShares(ipv6Path+".podCIDR", n.PodCIDR, n.NodeBits())
	}
	if gateway := n.Gateway; !gateway.IsLinkLocalUnicast() { // routers usually have a link-local address, which is in no network
		c.outsidePool(f, ipv6Path+".gateway", gateway)
		c.address(f, ipv6Path+".gateway", gateway)
	}
	c.poolEnds(f)
}

// nodeAddress6 checks a machine's address of the second family, which must be given exactly if the cluster is dual-stack.
func (c clusterCheck) nodeAddress6(path string, address netip.Addr) {
	switch {
	case c.Network.IPv6 == nil && address.IsValid() && !c.Unusable("network"):
		c.Found(path, "add the section network.ipv6, or remove the address", "%s is IPv6, and the cluster is not dual-stack", address)
	case c.Network.IPv6 == nil, c.Unusable(ipv6Path):
	case !address.IsValid():
		c.Found(path, "add it, because network.ipv6 makes the cluster dual-stack", "is missing")
	default:
		f := c.Network.IPv6.family()
		c.outsidePool(f, path, address)
		c.address(f, path, address)
	}
}
