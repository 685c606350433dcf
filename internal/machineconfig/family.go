package machineconfig

import (
	"fmt"
	"net/netip"
	"strconv"
)

// IPv6 is the second address family of a dual-stack cluster. IPv4 is the first: Slipway reaches the nodes by IPv4, etcd's members
// reach each other by IPv4, and the VIP is an IPv4 address.
type IPv6 struct {
	NodeCIDR    netip.Prefix // the nodes' network
	Gateway     netip.Addr   // default route of the nodes; link-local or in NodeCIDR
	PodCIDR     netip.Prefix // pods' network, /112 or larger
	ServiceCIDR netip.Prefix // Services' network, /108 or smaller
	Nameservers []netip.Addr // resolvers beside the cluster's; optional
}

// Kubernetes' limits for ranges of IPv6 addresses.
const (
	defaultNodeMask6  = 64  // range of a node's pods, by default
	longestNodeMask6  = 120 // as many addresses for a node as a /24 has
	largestNodeBits   = 16  // bits of the pods' range that number the nodes
	smallestNodeBits  = 8
	shortestService6  = 108
	longestPodNetwork = longestNodeMask6 - smallestNodeBits
)

// nodeMask6 returns the prefix length of a node's own range of pod addresses. It is Kubernetes' default if that leaves room for 256
// nodes and is within Kubernetes' limit. Otherwise it is the smallest range that the limit allows.
func (f IPv6) nodeMask6() int {
	bits := f.PodCIDR.Bits()
	if bits+smallestNodeBits <= defaultNodeMask6 && bits+largestNodeBits >= defaultNodeMask6 {
		return defaultNodeMask6
	}
	return min(bits+largestNodeBits, longestNodeMask6)
}

// validate returns what Kubernetes would refuse when it starts.
func (f IPv6) validate() []error {
	var errs []error
	if bits := f.PodCIDR.Bits(); bits > longestPodNetwork {
		errs = append(errs, fmt.Errorf("ipv6.podCIDR: %s leaves no /%d each for 256 nodes; give a /%d or larger",
			f.PodCIDR, longestNodeMask6, longestPodNetwork))
	}
	if bits := f.ServiceCIDR.Bits(); bits < shortestService6 {
		errs = append(errs, fmt.Errorf("ipv6.serviceCIDR: %s is larger than Kubernetes takes; give a /%d or smaller",
			f.ServiceCIDR, shortestService6))
	}
	return errs
}

// pods returns the pods' networks. IPv4 is first, which makes it the cluster's primary family.
func (c Cluster) pods() []string {
	if c.IPv6 == nil {
		return []string{c.PodCIDR.String()}
	}
	return []string{c.PodCIDR.String(), c.IPv6.PodCIDR.String()}
}

func (c Cluster) services() []string {
	if c.IPv6 == nil {
		return []string{c.ServiceCIDR.String()}
	}
	return []string{c.ServiceCIDR.String(), c.IPv6.ServiceCIDR.String()}
}

// nodeSubnets selects a node's own address for kubelet and etcd. It excludes the VIP, which is in the same network and moves.
func (c Cluster) nodeSubnets() []string {
	return []string{c.NodeCIDR.String(), "!" + host(c.VIP)}
}

// nodeIPs selects kubelet's addresses, one of each family. It names the one IPv6 address, because a router that announces the network
// gives the machine further addresses in it.
func (c Cluster) nodeIPs(n Node) []string {
	subnets := c.nodeSubnets()
	if c.IPv6 == nil {
		return subnets
	}
	return []string{subnets[0], host(n.Address6), subnets[1]} // Talos wants exclusions last
}

// addresses returns the node's own addresses, and the default gateway of each family.
func (c Cluster) addresses(n Node) (addresses []string, gateways []netip.Addr) {
	addresses, gateways = []string{netip.PrefixFrom(n.Address, c.NodeCIDR.Bits()).String()}, []netip.Addr{c.Gateway}
	if c.IPv6 != nil {
		addresses = append(addresses, netip.PrefixFrom(n.Address6, c.IPv6.NodeCIDR.Bits()).String())
		gateways = append(gateways, c.IPv6.Gateway)
	}
	return addresses, gateways
}

func (c Cluster) nameservers() []string {
	servers := c.Nameservers
	if c.IPv6 != nil {
		servers = append(append([]netip.Addr(nil), servers...), c.IPv6.Nameservers...)
	}
	texts := make([]string, len(servers))
	for i, server := range servers {
		texts[i] = server.String()
	}
	return texts
}

// controllerManagerArgs set the size of a node's range in the pods' IPv6 network. In the IPv4 network it is Kubernetes' default, a /24.
func (c Cluster) controllerManagerArgs() map[string]string {
	if c.IPv6 == nil {
		return nil
	}
	return map[string]string{"node-cidr-mask-size-ipv6": strconv.Itoa(c.IPv6.nodeMask6())}
}

// host returns the network that has only one address.
func host(address netip.Addr) string {
	return netip.PrefixFrom(address, address.BitLen()).String()
}

func defaultRoute(gateway netip.Addr) string {
	if gateway.Is4() {
		return "0.0.0.0/0"
	}
	return "::/0"
}
