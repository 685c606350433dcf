package config

import (
	"fmt"
	"net/netip"
	"slices"
)

const ipv6Path = "network.ipv6"

// validateIPv6 checks the second family of a dual-stack cluster. That every machine has an address of it is checked
// where the machines are.
func (v *validator) validateIPv6() {
	n := v.Network.IPv6
	if n == nil {
		return
	}
	v.disjoint([]ranged{
		{ipv6Path + ".nodeCIDR", n.NodeCIDR, minNodeBits6, maxNodeBits6},
		{ipv6Path + ".podCIDR", n.PodCIDR, minPodBits6, maxPodBits6},
		{ipv6Path + ".serviceCIDR", n.ServiceCIDR, minServiceBits6, maxServiceBits6},
	}, v.network6)
	v.podShares6()
	v.gateway6(ipv6Path+".gateway", n.Gateway)
	for i, nameserver := range n.Nameservers {
		v.nameserver6(fmt.Sprintf("%s.nameservers[%d]", ipv6Path, i), nameserver, n.Nameservers[:i])
	}
	v.loadBalancers6()
}

// network6 checks an IPv6 network by itself, and reports whether its range means what it says.
func (v *validator) network6(path string, network netip.Prefix) bool {
	switch {
	case !network.IsValid():
		return false
	case network.Addr().Is4() || network.Addr().Is4In6():
		v.found(path, "write an IPv6 network, such as fd25:11::/64", "%s is IPv4", network)
		return false
	case network != network.Masked():
		v.found(path, fmt.Sprintf("did you mean %s?", network.Masked()), "%s has host bits set", network)
		return false
	case !isUnicast(network.Addr()):
		v.found(path, "pick a range of your own, such as fd25:11::/64", "%s is not a range for hosts", network)
		return false
	}
	return true
}

// podShares6 checks that the pod network holds one share for each machine. How large a share is follows from the size
// of the network: a /64 if that leaves room for 256 and for no more than Kubernetes counts, 65536.
func (v *validator) podShares6() {
	pods, nodes := v.Network.IPv6.PodCIDR, len(v.Nodes())
	if !pods.IsValid() || !pods.Addr().Is6() || pods.Bits() < minPodBits6 || pods.Bits() > maxPodBits6 {
		return
	}
	share := min(pods.Bits()+16, podBitsPerNode6)
	if pods.Bits() >= 64-16 && pods.Bits() <= 64-8 {
		share = 64
	}
	if shares := 1 << (share - pods.Bits()); shares < nodes {
		v.found(ipv6Path+".podCIDR", "pick a larger one", "%s is divided into %d of the /%d that each node gets one of, and there are %d nodes",
			pods, shares, share, nodes)
	}
}

// address6 checks an address of the machines' IPv6 network that nothing else may have.
func (v *validator) address6(path string, address netip.Addr) {
	if v.inside6(path, address) {
		v.claim(path, address)
	}
}

// inside6 reports whether the address can be one of the machines' IPv6 network; if not, the problem is reported.
func (v *validator) inside6(path string, address netip.Addr) bool {
	network := v.Network.IPv6.NodeCIDR
	switch {
	case !address.IsValid():
		return false
	case address.Is4() || address.Is4In6():
		v.found(path, "write an IPv6 address", "%s is IPv4", address)
		return false
	case address.Zone() != "":
		v.found(path, "write it without", "%s has a zone", address)
		return false
	case !network.IsValid() || !network.Addr().Is6():
		return true // the network's own problem is reported
	case !network.Contains(address):
		v.found(path, fmt.Sprintf("pick an address in %s", network.Masked()), "%s is outside %s.nodeCIDR", address, ipv6Path)
		return false
	case address == networkAddress(network):
		v.found(path, "pick another address", "%s is the address of %s.nodeCIDR that every router of it has", address, ipv6Path)
		return false
	}
	return true
}

// gateway6 checks the default route. A router's link-local address is the usual one, and is in no network.
func (v *validator) gateway6(path string, gateway netip.Addr) {
	if gateway.IsLinkLocalUnicast() && gateway.Is6() && gateway.Zone() == "" {
		return
	}
	v.outsidePool6(path, gateway)
	v.address6(path, gateway)
}

func (v *validator) nameserver6(path string, nameserver netip.Addr, before []netip.Addr) {
	n := v.Network.IPv6
	switch {
	case !nameserver.IsValid() || nameserver == n.Gateway:
	case slices.Contains(before, nameserver):
		v.found(path, "remove it", "%s is in the list already", nameserver)
	case nameserver.Is4() || nameserver.Is4In6():
		v.found(path, "write it in network.nameservers", "%s is IPv4", nameserver)
	case !isUnicast(nameserver):
		v.found(path, "write the address of a DNS server", "%s is not an address that machines can reach", nameserver)
	default:
		v.outsideCluster(path, nameserver)
	}
}

func (v *validator) loadBalancers6() {
	pool := v.Network.IPv6.LoadBalancers
	if pool == nil {
		return
	}
	const path = ipv6Path + ".loadBalancers"
	start := v.inside6(path+".start", pool.Start)
	stop := v.inside6(path+".stop", pool.Stop)
	if start && stop && pool.Stop.Less(pool.Start) {
		v.found(path+".stop", "swap them", "%s is before %s.start %s", pool.Stop, path, pool.Start)
	}
}

// outsidePool6 checks an address that no Service may be given.
func (v *validator) outsidePool6(path string, address netip.Addr) {
	pool := v.Network.IPv6.LoadBalancers
	if pool != nil && address.IsValid() && pool.Start.IsValid() && pool.Stop.IsValid() && between(address, pool.Start, pool.Stop) {
		v.found(path, "pick an address outside of it, or move the pool", "%s is in the pool %s.loadBalancers, %s to %s",
			address, ipv6Path, pool.Start, pool.Stop)
	}
}

// nodeAddress6 checks a machine's address of the second family: there exactly if the cluster has one.
func (v *validator) nodeAddress6(path string, address netip.Addr) {
	switch {
	case v.Network.IPv6 == nil && address.IsValid() && !v.unusable["network"]:
		v.found(path, "add the section network.ipv6, or remove the address", "%s is IPv6, and the cluster is not dual-stack", address)
	case v.Network.IPv6 == nil:
	case !address.IsValid():
		v.found(path, "add it, for network.ipv6 makes the cluster dual-stack", "is missing")
	default:
		v.outsidePool6(path, address)
		v.address6(path, address)
	}
}
