package talos

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
)

// linkName is the name of a machine's first network card.
const linkName = "eth0"

// nodeAddresses returns the addresses that the configuration declares for this machine's network card, and those of the
// cloud-init drive, which a configured node keeps unless it ignores the link. A device that does not match the card is
// ignored.
func (b *boot) nodeAddresses(cfg config.Provider) []netip.Prefix {
	var out []netip.Prefix
	add := func(p netip.Prefix) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	ignored := false
	for _, d := range cfg.Machine().Network().Devices() {
		if !b.matchesLink(d.Interface(), selectedMAC(d)) {
			b.printk("[talos] no link matches device %q %q of the machine configuration", d.Interface(), selectedMAC(d))
			continue
		}
		ignored = ignored || d.Ignore()
		for _, a := range d.Addresses() {
			if p, err := parsePrefix(a); err == nil {
				add(p)
			} else {
				b.printk("[talos] address %q of the machine configuration: %v", a, err)
			}
		}
	}
	for _, link := range cfg.NetworkCommonLinkConfigs() {
		if b.matchesLink(link.Name(), "") {
			for _, a := range link.Addresses() {
				add(a.Address())
			}
		}
	}
	if !ignored {
		for _, p := range b.cloudInit() {
			add(p)
		}
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
			b.printk("[talos] error assigning address %s to %s: %v", a, linkName, err)
			b.log.Error("address not added", "address", a, "error", err)
			continue
		}
		b.printk("[talos] assigned address {\"component\": \"controller-runtime\", \"address\": %q, \"link\": %q}", a, linkName)
		b.site.mu.Lock()
		b.addresses = append(b.addresses, a)
		b.site.mu.Unlock()
	}
	b.publishAddresses()
	b.site.change.notify()
}

// publishAddresses publishes the machine's addresses.
func (b *boot) publishAddresses() {
	b.site.mu.Lock()
	own, all := slices.Clone(b.addresses), b.allAddresses()
	b.site.mu.Unlock()
	put := func(id resource.ID, addresses []netip.Prefix) {
		r := network.NewNodeAddress(network.NamespaceName, id)
		r.TypedSpec().Addresses = addresses
		b.res.Put(r)
	}
	put(network.NodeAddressCurrentID, all)
	put(network.NodeAddressRoutedID, own)
	put(network.NodeAddressAccumulativeID, all)
	if len(own) > 0 {
		put(network.NodeAddressDefaultID, own[:1])
	}
	for _, p := range all {
		r := network.NewAddressStatus(network.NamespaceName, network.AddressID(linkName, p))
		r.TypedSpec().Address, r.TypedSpec().LinkName = p, linkName
		b.res.Put(r)
	}
	st := network.NewStatus(network.NamespaceName, network.StatusID)
	st.TypedSpec().AddressReady, st.TypedSpec().ConnectivityReady = len(own) > 0, len(own) > 0
	st.TypedSpec().HostnameReady, st.TypedSpec().EtcFilesReady = true, true
	b.res.Put(st)
}

// publishNodeIPs publishes the addresses that the kubelet registers with.
func (b *boot) publishNodeIPs(addresses []netip.Addr) {
	r := k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID)
	r.TypedSpec().Addresses = addresses
	b.res.Put(r)
}

// hasAddress tells whether the machine has an address. The caller holds the site's mutex.
func (b *boot) hasAddress(a netip.Addr) bool {
	return slices.ContainsFunc(b.addresses, func(p netip.Prefix) bool { return p.Addr() == a })
}

// allAddresses returns the addresses, with the virtual IP if this machine has it. The caller holds the site's mutex.
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

func addrsOf(prefixes []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range prefixes {
		out = append(out, p.Addr())
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
