package config

import "net/netip"

// Network is what the cluster's addresses come from. Talos, Cilium and the cluster settings all read these values.
type Network struct {
	NodeCIDR      netip.Prefix  `json:"nodeCIDR" config:"required"`      // the machines' network; holds every address below; required
	Gateway       netip.Addr    `json:"gateway" config:"required"`       // default route of the machines; required
	VIP           netip.Addr    `json:"vip" config:"required"`           // address of the Kubernetes API, held by one control plane at a time; required
	PodCIDR       netip.Prefix  `json:"podCIDR" config:"required"`       // pods' network, of which each node gets a /24; required
	ServiceCIDR   netip.Prefix  `json:"serviceCIDR" config:"required"`   // Services' network, whose tenth address is the cluster's DNS; required
	Nameservers   []netip.Addr  `json:"nameservers"`                     // DNS servers of the machines; default: Gateway
	NTP           []string      `json:"ntp"`                             // time servers, names or addresses; empty means Talos's own default
	LoadBalancers LoadBalancers `json:"loadBalancers" config:"required"` // required
	IPv6          *IPv6         `json:"ipv6"`                            // makes the cluster dual-stack; nil means IPv4 only
}

// LoadBalancers is the pool of addresses for Services of type LoadBalancer, and the two that are spoken for.
type LoadBalancers struct {
	Start   netip.Addr `json:"start" config:"required"`   // first address of the pool; required
	Stop    netip.Addr `json:"stop" config:"required"`    // last address of the pool, itself included; required
	Mesh    netip.Addr `json:"mesh" config:"required"`    // the mesh API server's, out of the pool; required
	Gateway netip.Addr `json:"gateway" config:"required"` // the gateway's (Envoy), out of the pool; required
}

// IPv6 is the second family of a dual-stack cluster. IPv4 is the primary one and comes first everywhere; the
// Kubernetes API's address, Network.VIP, is IPv4.
type IPv6 struct {
	NodeCIDR      netip.Prefix       `json:"nodeCIDR" config:"required"`    // the machines' network; required
	Gateway       netip.Addr         `json:"gateway" config:"required"`     // default route of the machines, in NodeCIDR or link-local; required
	PodCIDR       netip.Prefix       `json:"podCIDR" config:"required"`     // pods' network, /32 to /112; of a /48 to /56, each node gets a /64; required
	ServiceCIDR   netip.Prefix       `json:"serviceCIDR" config:"required"` // Services' network, /108 to /124, whose tenth address is the cluster's DNS; required
	Nameservers   []netip.Addr       `json:"nameservers"`                   // DNS servers of the machines, after Network.Nameservers; optional
	LoadBalancers *IPv6LoadBalancers `json:"loadBalancers"`                 // nil means that Services of type LoadBalancer get no IPv6 address
}

// IPv6LoadBalancers is the pool of IPv6 addresses for Services of type LoadBalancer.
type IPv6LoadBalancers struct {
	Start netip.Addr `json:"start" config:"required"` // first address of the pool, in IPv6.NodeCIDR; required
	Stop  netip.Addr `json:"stop" config:"required"`  // last address of the pool, itself included; required
}
