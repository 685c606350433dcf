package talos

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
)

// publishLinks publishes the network cards with their MAC addresses.
func (b *boot) publishLinks() {
	for i, nic := range b.m.hw.NICs {
		mac, err := net.ParseMAC(nic.MAC)
		if err != nil {
			b.log.Error("network card", "mac", nic.MAC, "error", err)
			continue
		}
		link := network.NewLinkStatus(network.NamespaceName, "eth"+strconv.Itoa(i))
		spec := link.TypedSpec()
		spec.Index, spec.Type, spec.MTU, spec.LinkState = uint32(i+linkIndex), nethelpers.LinkEther, 1500, true
		spec.HardwareAddr, spec.PermanentAddr = nethelpers.HardwareAddr(mac), nethelpers.HardwareAddr(mac)
		spec.OperationalState, spec.Driver = nethelpers.OperStateUp, "virtio_net"
		b.res.Put(link)
	}
}

// defaultRoute is a default route.
type defaultRoute struct {
	gateway netip.Addr
	metric  uint32
}

// defaultRoutes are those of the configuration, then those of the cloud-init drive, which a configured machine keeps. Of two with the same
// metric, the kernel takes the first: Talos adds them in any order, and here, it is the configuration's. cfg is nil in maintenance mode.
func (b *boot) defaultRoutes(cfg config.Provider) []defaultRoute {
	var out []defaultRoute
	add := func(g netip.Addr, metric uint32) {
		if !slices.ContainsFunc(out, func(o defaultRoute) bool { return o.gateway.Is4() == g.Is4() && o.metric == metric }) {
			out = append(out, defaultRoute{g, metric})
		}
	}
	if cfg != nil {
		for _, d := range cfg.Machine().Network().Devices() {
			if !b.matchesLink(d.Interface(), selectedMAC(d)) {
				continue
			}
			for _, r := range d.Routes() {
				gateway, err := netip.ParseAddr(r.Gateway())
				to, toErr := netip.ParsePrefix(cmp.Or(r.Network(), "0.0.0.0/0"))
				if err == nil && toErr == nil && to.Bits() == 0 {
					add(gateway, cmp.Or(r.Metric(), network.DefaultRouteMetric))
				}
			}
		}
	}
	if ci := b.m.hw.CloudInit; ci != nil {
		for _, g := range ci.Gateways {
			metric := uint32(network.DefaultRouteMetric)
			if g.Is6() {
				metric *= 2
			}
			add(g, metric)
		}
	}
	return out
}

// publishRoutes publishes the routes to the machine's networks, the default routes, and the name servers. Routes that it has published
// before, and are none any more, go.
func (b *boot) publishRoutes(cfg config.Provider) {
	b.site.mu.Lock()
	own := slices.Clone(b.addresses)
	b.site.mu.Unlock()
	var routes []string
	put := func(r network.RouteStatusSpec) {
		id := network.RouteID(nethelpers.TableMain, r.Family, r.Destination, r.Gateway, r.Priority, linkName)
		routes = append(routes, id)
		status := network.NewRouteStatus(network.NamespaceName, id)
		r.OutLinkName, r.OutLinkIndex, r.Table, r.Type = linkName, linkIndex, nethelpers.TableMain, nethelpers.TypeUnicast
		*status.TypedSpec() = r
		b.res.Put(status)
	}
	for _, p := range own { // the kernel makes them
		r := network.RouteStatusSpec{Family: familyOf(p.Addr()), Destination: p.Masked(), Protocol: nethelpers.ProtocolKernel}
		if p.Addr().Is4() {
			r.Source, r.Scope = p.Addr(), nethelpers.ScopeLink
		} else {
			r.Priority, r.Scope = 256, nethelpers.ScopeGlobal
		}
		put(r)
	}
	for _, r := range b.defaultRoutes(cfg) {
		// The kernel refuses a route if the gateway is in none of the machine's networks.
		if g := r.gateway; slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(g) }) {
			put(network.RouteStatusSpec{
				Family: familyOf(g), Gateway: g, Priority: r.metric, Scope: nethelpers.ScopeGlobal, Protocol: nethelpers.ProtocolStatic,
			})
		} else {
			b.Printk("[talos] error adding route by %s: network is unreachable", g)
		}
	}
	b.site.mu.Lock()
	former := b.routes
	b.routes = routes
	b.site.mu.Unlock()
	for _, id := range former {
		if !slices.Contains(routes, id) {
			b.res.Remove(network.NewRouteStatus(network.NamespaceName, id).Metadata())
		}
	}
	resolvers := network.NewResolverStatus(network.NamespaceName, network.ResolverID)
	resolvers.TypedSpec().DNSServers = b.nameservers(cfg)
	b.res.Put(resolvers)
}

// nameservers are the name servers of the configuration, or of the cloud-init drive.
func (b *boot) nameservers(cfg config.Provider) []netip.Addr {
	if cfg != nil {
		if r := cfg.NetworkResolverConfig(); r != nil && len(r.Resolvers()) > 0 {
			return r.Resolvers()
		}
	}
	if b.m.hw.CloudInit != nil {
		return b.m.hw.CloudInit.DNS
	}
	return nil
}
