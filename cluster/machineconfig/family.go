package machineconfig

import (
	"fmt"
	"net/netip"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
)

// nodeSubnets selects a node's own address for kubelet and etcd. It excludes the VIP, which is in the same network and moves.
func (c model) nodeSubnets() []string {
	return []string{c.Network.NodeCIDR.String(), "!" + host(c.Network.VIP)}
}

// nodeIPs selects kubelet's addresses, one of each family. It names the one IPv6 address, because a router that announces the network
// gives the machine further addresses in it.
func (c model) nodeIPs(n cluster.Machine) []string {
	subnets := c.nodeSubnets()
	if c.Network.IPv6 == nil {
		return subnets
	}
	return []string{subnets[0], host(n.Address6), subnets[1]} // Talos wants exclusions last
}

// addresses returns the node's own addresses, and the default gateway of each family.
func (c model) addresses(n cluster.Machine) (addresses []string, gateways []netip.Addr) {
	addresses, gateways = []string{netip.PrefixFrom(n.Address, c.Network.NodeCIDR.Bits()).String()}, []netip.Addr{c.Network.Gateway}
	if c.Network.IPv6 != nil {
		addresses = append(addresses, netip.PrefixFrom(n.Address6, c.Network.IPv6.NodeCIDR.Bits()).String())
		gateways = append(gateways, c.Network.IPv6.Gateway)
	}
	return addresses, gateways
}

// host returns the network that has only one address.
func host(address netip.Addr) string {
	return netip.PrefixFrom(address, address.BitLen()).String()
}

func texts[T fmt.Stringer](values []T) []string { return xslices.Map(values, T.String) }
