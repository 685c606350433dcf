package talos

import (
	"cmp"
	"net/netip"
	"slices"

	siderolabsnet "github.com/siderolabs/net"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// nodeIPs are the addresses that the kubelet of a node registers with: one of each family that matches
// machine.kubelet.nodeIP.validSubnets, in the order of these subnets. Without subnets the families are those of the
// Services, in their order. The virtual IP is never one of them.
func nodeIPs(cfg config.Provider, addresses []netip.Addr) ([]netip.Addr, error) {
	subnets := cfg.Machine().Kubelet().NodeIP().ValidSubnets()
	if len(subnets) == 0 {
		for _, cidr := range cfg.Cluster().Network().ServiceCIDRs() {
			p, err := netip.ParsePrefix(cidr)
			if err != nil {
				return nil, err
			}
			subnets = append(subnets, netip.PrefixFrom(p.Addr(), 0).Masked().String()) // every address of its family
		}
	}
	matching, err := siderolabsnet.FilterIPs(addresses, subnets)
	var out []netip.Addr
	for _, a := range matching {
		if !slices.ContainsFunc(out, func(o netip.Addr) bool { return o.Is4() == a.Is4() }) {
			out = append(out, a)
		}
	}
	return out, err
}

// etcdAddresses are the addresses that etcd of a node advertises.
func etcdAddresses(cfg config.Provider, addresses []netip.Addr) ([]netip.Addr, error) {
	subnets := cfg.Cluster().Etcd().AdvertisedSubnets()
	if len(subnets) == 0 {
		return addresses, nil
	}
	return siderolabsnet.FilterIPs(addresses, subnets)
}

// ipv4First sorts addresses in the order in which Talos lists them.
func ipv4First(prefixes []netip.Prefix) []netip.Prefix {
	slices.SortStableFunc(prefixes, func(a, b netip.Prefix) int { return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen()) })
	return prefixes
}
