package talos

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	siderolabsnet "github.com/siderolabs/net"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
)

// linkName and linkIndex are the kernel's name and number of a machine's first network card.
const (
	linkName  = "eth0"
	linkIndex = 2
)

// nodeAddresses returns the addresses that the configuration declares for this machine's network card, and the addresses of the cloud-init
// drive, which a configured node keeps unless it ignores the link. A device that does not match the card is ignored.
func (b *boot) nodeAddresses(cfg config.Provider) []netip.Prefix {
	var out []netip.Prefix
	ignored := false
	for _, d := range cfg.Machine().Network().Devices() {
		if !b.matchesLink(d.Interface(), selectedMAC(d)) {
			b.Printk("[talos] no link matches device %q %q of the machine configuration", d.Interface(), selectedMAC(d))
			continue
		}
		ignored = ignored || d.Ignore()
		for _, a := range d.Addresses() {
			if p, err := parsePrefix(a); err == nil {
				out = union(out, p)
			} else {
				b.Printk("[talos] address %q of the machine configuration: %v", a, err)
			}
		}
	}
	for _, link := range cfg.NetworkCommonLinkConfigs() {
		if b.matchesLink(link.Name(), "") {
			for _, a := range link.Addresses() {
				out = union(out, a.Address())
			}
		}
	}
	if !ignored {
		out = union(out, b.cloudInit()...)
	}
	return out
}

func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// selectedMAC is the MAC pattern that a device of the configuration selects by; empty if it has none.
func selectedMAC(d configconfig.Device) string {
	selector := d.Selector()
	if selector == nil {
		return ""
	}
	return cmp.Or(selector.HardwareAddress(), selector.PermanentAddress())
}

// matchesLink tells whether an interface name or a MAC pattern selects the machine's network card.
func (b *boot) matchesLink(name, mac string) bool {
	if len(b.m.hw.NICs) == 0 {
		return false
	}
	if name != "" {
		return name == linkName
	}
	own := strings.ToLower(b.m.hw.NICs[0].MAC)
	mac = strings.ToLower(mac)
	if prefix, wild := strings.CutSuffix(mac, "*"); wild {
		return strings.HasPrefix(own, prefix)
	}
	return mac != "" && mac == own
}

// cloudInit returns the addresses of the cloud-init drive.
func (b *boot) cloudInit() []netip.Prefix {
	if b.m.hw.CloudInit == nil || len(b.m.hw.NICs) == 0 {
		return nil
	}
	return slices.Clone(b.m.hw.CloudInit.Addresses)
}

// addAddresses adds addresses to the machine.
func (b *boot) addAddresses(addresses []netip.Prefix) {
	for _, a := range addresses {
		if err := b.site.cfg.Addresses.Add(a); err != nil {
			b.Printk("[talos] error assigning address %s to %s: %v", a, linkName, err)
			b.log.Error("address not added", "address", a, "error", err)
			continue
		}
		b.Printk("[talos] assigned address {\"component\": \"controller-runtime\", \"address\": %q, \"link\": %q}", a, linkName)
		b.site.mu.Lock()
		b.addresses = append(b.addresses, a)
		b.site.mu.Unlock()
	}
	b.publishAddresses()
	b.site.change.Notify()
}

// removeAddresses removes addresses of the machine. The virtual IP is the cluster's.
func (b *boot) removeAddresses(addresses []netip.Prefix) {
	for _, a := range addresses {
		if err := b.site.cfg.Addresses.Remove(a); err != nil {
			b.log.Error("address not removed", "address", a, "error", err)
		}
	}
}

// publishAddresses publishes the machine's addresses. An address that is gone stays among the accumulated ones.
func (b *boot) publishAddresses() {
	b.site.mu.Lock()
	routed, algorithm := b.routed(), b.sortAlgorithm()
	former := b.accumulated
	b.accumulated = sortAddresses(union(slices.Clone(former), routed...), algorithm)
	accumulated := slices.Clone(b.accumulated)
	var own netip.Prefix
	if len(b.addresses) > 0 {
		own = sortAddresses(slices.Clone(b.addresses), algorithm)[0]
	}
	b.site.mu.Unlock()
	put := func(id resource.ID, addresses []netip.Prefix) {
		r := network.NewNodeAddress(network.NamespaceName, id)
		r.TypedSpec().Addresses, r.TypedSpec().SortAlgorithm = addresses, algorithm
		b.res.Put(r)
	}
	put(network.NodeAddressCurrentID, routed)
	put(network.NodeAddressRoutedID, routed)
	put(network.NodeAddressAccumulativeID, accumulated)
	if own.IsValid() {
		put(network.NodeAddressDefaultID, []netip.Prefix{own})
	}
	for _, p := range former {
		if !slices.Contains(routed, p) {
			b.res.Remove(network.NewAddressStatus(network.NamespaceName, network.AddressID(linkName, p)).Metadata())
		}
	}
	for _, p := range routed {
		r := network.NewAddressStatus(network.NamespaceName, network.AddressID(linkName, p))
		spec := r.TypedSpec()
		spec.Address, spec.LinkName, spec.LinkIndex, spec.Family = p, linkName, linkIndex, familyOf(p.Addr())
		spec.Scope, spec.Flags = nethelpers.ScopeGlobal, nethelpers.AddressFlags(nethelpers.AddressPermanent)
		b.res.Put(r)
	}
	st := network.NewStatus(network.NamespaceName, network.StatusID)
	st.TypedSpec().AddressReady, st.TypedSpec().ConnectivityReady = own.IsValid(), own.IsValid()
	st.TypedSpec().HostnameReady, st.TypedSpec().EtcFilesReady = true, true
	b.res.Put(st)
}

// routed are the machine's addresses in Talos's order, with the virtual IP if this machine has it: other nodes learn them in this order.
// The caller holds the site's mutex.
func (b *boot) routed() []netip.Prefix { return sortAddresses(b.allAddresses(), b.sortAlgorithm()) }

// sortAlgorithm is how the configuration orders addresses. The caller holds the site's mutex.
func (b *boot) sortAlgorithm() nethelpers.AddressSortAlgorithm {
	if b.config == nil {
		return nethelpers.AddressSortAlgorithmV1
	}
	return b.config.Machine().Features().NodeAddressSortAlgorithm()
}

// sortAddresses sorts addresses by family and value. The algorithm v2 puts a more specific address, such as a virtual IP, before the others
// of its network.
func sortAddresses(addresses []netip.Prefix, algorithm nethelpers.AddressSortAlgorithm) []netip.Prefix {
	slices.SortFunc(addresses, func(a, b netip.Prefix) int {
		narrow := cmp.Compare(a.Bits(), b.Bits())
		if algorithm == nethelpers.AddressSortAlgorithmV2 {
			narrow = -narrow
			if a.Contains(b.Addr()) != b.Contains(a.Addr()) {
				return narrow
			}
		}
		return cmp.Or(a.Addr().Compare(b.Addr()), narrow)
	})
	return addresses
}

// union adds those of more that are not in a list.
func union(list []netip.Prefix, more ...netip.Prefix) []netip.Prefix {
	for _, p := range more {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

func familyOf(a netip.Addr) nethelpers.Family {
	if a.Is6() {
		return nethelpers.FamilyInet6
	}
	return nethelpers.FamilyInet4
}

// publishNodeIPs publishes the addresses that the kubelet registers with.
func (b *boot) publishNodeIPs(addresses []netip.Addr) {
	r := k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID)
	r.TypedSpec().Addresses = addresses
	b.res.Put(r)
}

// hasAddress tells whether the machine has an address, which may be the virtual IP. The caller holds the site's mutex.
func (b *boot) hasAddress(a netip.Addr) bool {
	return slices.ContainsFunc(b.allAddresses(), func(p netip.Prefix) bool { return p.Addr() == a })
}

// allAddresses returns the addresses as the kernel has them, with the virtual IP last if this machine has it. The caller holds the
// site's mutex.
func (b *boot) allAddresses() []netip.Prefix {
	all := slices.Clone(b.addresses)
	if b.vip.IsValid() {
		all = append(all, b.vip)
	}
	return all
}

// primary is the machine's first address. Other machines use it.
func (b *boot) primary() netip.Addr {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	return b.primaryLocked()
}

func (b *boot) primaryLocked() netip.Addr {
	if len(b.addresses) == 0 {
		return netip.Addr{}
	}
	return b.addresses[0].Addr()
}

// addrsOf returns each address once: a machine has one with two prefixes while its configuration and its cloud-init drive differ in that.
func addrsOf(prefixes []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range prefixes {
		if !slices.Contains(out, p.Addr()) {
			out = append(out, p.Addr())
		}
	}
	return out
}

// hostname is the configured host name, or the stable one that Talos generates.
func hostname(cfg config.Provider, nodeID string) string {
	if h := cfg.NetworkHostnameConfig(); h != nil && h.Hostname() != "" {
		name, _, _ := strings.Cut(h.Hostname(), ".")
		return name
	}
	id := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(nodeID))
	return fmt.Sprintf("talos-%s-%s", id[:3], id[3:6])
}

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
