package machineconfig

import (
	"fmt"
	"net/netip"
	"strconv"
)

// IPv6 is the second family of a dual-stack cluster. IPv4 stays the first everywhere: nodes are reached, etcd speaks and
// the VIP is by IPv4.
type IPv6 struct {
	NodeCIDR    netip.Prefix // the nodes' network
	Gateway     netip.Addr   // default route of the nodes; link-local or in NodeCIDR
	PodCIDR     netip.Prefix // pods' network, /112 or larger
	ServiceCIDR netip.Prefix // Services' network, /108 or smaller
	Nameservers []netip.Addr // resolvers beside the cluster's; optional
}

// Kubernetes' limits of a range of IPv6 addresses.
const (
	defaultNodeMask6  = 64  // a node's pods by default
	longestNodeMask6  = 120 // leaves a node as many addresses as a /24 does
	largestNodeBits   = 16  // of the pods' range, for telling nodes apart
	smallestNodeBits  = 8
	shortestService6  = 108
	longestPodNetwork = longestNodeMask6 - smallestNodeBits
)

// nodeMask6 is the prefix length of a node's own range of pod addresses: Kubernetes' default if that leaves room for
// 256 nodes and stays within its limit, and else the smallest range that the limit allows.
func (f IPv6) nodeMask6() int {
	bits := f.PodCIDR.Bits()
	if bits+smallestNodeBits <= defaultNodeMask6 && bits+largestNodeBits >= defaultNodeMask6 {
		return defaultNodeMask6
	}
	return min(bits+largestNodeBits, longestNodeMask6)
}

// validate returns what Kubernetes would refuse once it runs.
func (f IPv6) validate() []error {
	var errs []error
	if bits := f.PodCIDR.Bits(); bits > longestPodNetwork {
		errs = append(errs, fmt.Errorf("ipv6.podCIDR: %s leaves no /%d each for 256 nodes; give a /%d or larger", f.PodCIDR, longestNodeMask6, longestPodNetwork))
	}
	if bits := f.ServiceCIDR.Bits(); bits < shortestService6 {
		errs = append(errs, fmt.Errorf("ipv6.serviceCIDR: %s is larger than Kubernetes takes; give a /%d or smaller", f.ServiceCIDR, shortestService6))
	}
	return errs
}

// pods are the pods' networks, IPv4 first: the order makes the cluster's primary family.
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

// nodeSubnets picks a node's own address for kubelet and etcd. The VIP is in the same network and moves: excluded.
func (c Cluster) nodeSubnets() []string {
	return []string{c.NodeCIDR.String(), "!" + host(c.VIP)}
}

// nodeIPs picks kubelet's addresses, one of each family. The IPv6 one is named itself: a router that announces the
// network gives the machine further addresses in it.
func (c Cluster) nodeIPs(n Node) []string {
	subnets := c.nodeSubnets()
	if c.IPv6 == nil {
		return subnets
	}
	return []string{subnets[0], host(n.Address6), subnets[1]} // Talos wants exclusions last
}

// addresses are the node's own, and the default route of each family.
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

// controllerManagerArgs tell how much of the pods' IPv6 network a node gets; of IPv4 it is Kubernetes' default, a /24.
func (c Cluster) controllerManagerArgs() map[string]string {
	if c.IPv6 == nil {
		return nil
	}
	return map[string]string{"node-cidr-mask-size-ipv6": strconv.Itoa(c.IPv6.nodeMask6())}
}

// host is the network of one address.
func host(address netip.Addr) string {
	return netip.PrefixFrom(address, address.BitLen()).String()
}

func defaultRoute(gateway netip.Addr) string {
	if gateway.Is4() {
		return "0.0.0.0/0"
	}
	return "::/0"
}
