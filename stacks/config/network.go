package config

import (
	"fmt"
	"net/netip"
	"slices"
)

func (v *validator) validateNetwork() {
	n := &v.Network
	v.networks()
	v.address("network.gateway", n.Gateway)
	v.address("network.vip", n.VIP)
	if n.Nameservers != nil && len(n.Nameservers) == 0 {
		v.found("network.nameservers", "name a DNS server, or remove the key for network.gateway", "is empty")
	}
	for i, nameserver := range n.Nameservers {
		v.nameserver(fmt.Sprintf("network.nameservers[%d]", i), nameserver, n.Nameservers[:i])
	}
	for i, server := range n.NTP {
		path := fmt.Sprintf("network.ntp[%d]", i)
		if address, err := netip.ParseAddr(server); err == nil {
			v.outsideCluster(path, address)
			continue
		}
		v.shape(path, server, hostForm, "a host name or address", "time.cloudflare.com")
	}
	v.distinct("network.ntp", n.NTP)
	v.validateLoadBalancers()
	v.validateIPv6()
}

// ranged is a network and the lengths that its prefix may have.
type ranged struct {
	path     string
	network  netip.Prefix
	min, max int
}

// networks checks the three networks, each for itself and against the others.
func (v *validator) networks() {
	n := v.Network
	v.disjoint([]ranged{
		{"network.nodeCIDR", n.NodeCIDR, 8, maxNodeBits},
		{"network.podCIDR", n.PodCIDR, 8, podBitsPerNode},
		{"network.serviceCIDR", n.ServiceCIDR, minServiceBits, maxServiceBits},
	}, v.network)
	v.podShares()
}

// disjoint checks networks of one family, each by itself, and that no two overlap.
func (v *validator) disjoint(all []ranged, check func(path string, network netip.Prefix) bool) {
	for i, one := range all {
		if !check(one.path, one.network) {
			continue
		}
		if bits := one.network.Bits(); bits < one.min || bits > one.max {
			v.found(one.path, fmt.Sprintf("write a length from /%d to /%d", one.min, one.max), "%s has an unusable size", one.network)
		}
		for _, other := range all[:i] {
			if other.network.IsValid() && one.network.Overlaps(other.network) {
				v.found(one.path, "pick a disjoint range", "%s overlaps %s %s", one.network, other.path, other.network)
			}
		}
	}
}

// podShares checks that the pod network holds one share for each machine.
func (v *validator) podShares() {
	pods, nodes := v.Network.PodCIDR, len(v.Nodes())
	if !pods.IsValid() || !pods.Addr().Is4() || pods.Bits() < 8 || pods.Bits() > podBitsPerNode {
		return
	}
	if shares := 1 << (podBitsPerNode - pods.Bits()); shares < nodes {
		v.found("network.podCIDR", "pick a larger one", "%s is divided into %d of the /%d that each node gets one of, and there are %d nodes",
			pods, shares, podBitsPerNode, nodes)
	}
}

// network checks a network by itself, and reports whether its range means what it says.
func (v *validator) network(path string, network netip.Prefix) bool {
	switch {
	case !network.IsValid():
		return false
	case !network.Addr().Is4():
		v.found(path, "write an IPv4 network here, and the IPv6 one below network.ipv6", "%s is IPv6", network)
		return false
	case network != network.Masked():
		v.found(path, fmt.Sprintf("did you mean %s?", network.Masked()), "%s has host bits set", network)
		return false
	case !isUnicast(network.Addr()):
		v.found(path, "pick a private range, such as 10.25.11.0/24", "%s is not a range for hosts", network)
		return false
	}
	return true
}

// address checks an address of the machines' network that nothing else may have.
func (v *validator) address(path string, address netip.Addr) {
	if v.inside(path, address) {
		v.claim(path, address)
	}
}

// claim reports an address that another path has.
func (v *validator) claim(path string, address netip.Addr) {
	if owner, taken := v.taken[address]; taken {
		v.found(path, "pick a free address", "%s is taken by %s", address, owner)
		return
	}
	if v.taken == nil {
		v.taken = map[netip.Addr]string{}
	}
	v.taken[address] = path
}

// inside reports whether the address can be one of the machines' network; if not, the problem is reported.
func (v *validator) inside(path string, address netip.Addr) bool {
	network := v.Network.NodeCIDR
	switch {
	case !address.IsValid():
		return false
	case !address.Is4():
		v.found(path, "write an IPv4 address", "%s is IPv6", address)
		return false
	case !network.IsValid() || !network.Addr().Is4():
		return true // the network's own problem is reported
	case !network.Contains(address):
		v.found(path, fmt.Sprintf("pick an address in %s", network.Masked()), "%s is outside network.nodeCIDR", address)
		return false
	case address == networkAddress(network):
		v.found(path, "pick another address", "%s is the network address of network.nodeCIDR", address)
		return false
	case address == broadcastAddress(network):
		v.found(path, "pick another address", "%s is the broadcast address of network.nodeCIDR", address)
		return false
	}
	return true
}

func (v *validator) nameserver(path string, nameserver netip.Addr, before []netip.Addr) {
	if !nameserver.IsValid() || nameserver == v.Network.Gateway {
		return // it has its own path, and may be here only as the default
	}
	switch {
	case slices.Contains(before, nameserver):
		v.found(path, "remove it", "%s is in the list already", nameserver)
	case !nameserver.Is4():
		v.found(path, "write it in network.ipv6.nameservers", "%s is IPv6", nameserver)
	case !isUnicast(nameserver):
		v.found(path, "write the address of a DNS server", "%s is not an address that machines can reach", nameserver)
	default:
		v.outsideCluster(path, nameserver)
	}
}

// outsideCluster checks the address of a server that the machines need before there is a cluster.
func (v *validator) outsideCluster(path string, address netip.Addr) {
	n := v.Network
	inside := func(what string, in bool) {
		if in {
			v.found(path, "write a server outside the cluster", "%s is %s, which exists only once the cluster does", address, what)
		}
	}
	within := func(path string, network netip.Prefix) {
		inside(fmt.Sprintf("in %s %s", path, network), network.IsValid() && network.Contains(address))
	}
	within("network.podCIDR", n.PodCIDR)
	within("network.serviceCIDR", n.ServiceCIDR)
	inside("network.vip", address == n.VIP)
	inside("in the pool network.loadBalancers", v.hasPool() && between(address, n.LoadBalancers.Start, n.LoadBalancers.Stop))
	if six := n.IPv6; six != nil {
		within(ipv6Path+".podCIDR", six.PodCIDR)
		within(ipv6Path+".serviceCIDR", six.ServiceCIDR)
		if pool := six.LoadBalancers; pool != nil {
			inside("in the pool "+ipv6Path+".loadBalancers", address.Is6() && between(address, pool.Start, pool.Stop))
		}
	}
	for i, pool := range v.NodePools {
		for j, node := range pool.Nodes {
			inside(fmt.Sprintf("nodePools[%d].nodes[%d]'s", i, j), address == node.Address || address == node.Address6)
		}
	}
}
