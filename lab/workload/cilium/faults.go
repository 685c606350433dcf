package cilium

import (
	"net/netip"

	"github.com/slipway-platform/slipway/lab/fault"
)

// crashed tells whether the fault cilium-agent-crash is on for the agent's node, with the fault's detail.
func (a *agent) crashed() (detail string, on bool) {
	f, on := a.Cluster.Faults.Active(fault.CiliumAgentCrash, a.Node)
	return f.Detail, on
}

// cannotReach tells whether the fault cilium-health keeps the agent from reaching another node, with the fault's detail.
func (a *agent) cannotReach(node string) (detail string, on bool) {
	f, on := a.Cluster.Faults.Active(fault.CiliumHealth, a.Node+"/"+node)
	return f.Detail, on
}

// defaultWrongPodCIDR is the range of the fault pod-cidr without detail: one that no stack file declares.
var defaultWrongPodCIDR = netip.MustParsePrefix("10.99.0.0/16")

// wrongPodCIDR is the range that the fault pod-cidr gives to a node, whose first address is ip; false if the fault is
// off. From a range of a /16 or larger, each node gets a /24, by the last byte of its address.
func wrongPodCIDR(node, ip string, faults *fault.Set) (netip.Prefix, bool) {
	f, on := faults.Active(fault.PodCIDR, node)
	if !on {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(f.Detail)
	if err != nil {
		p = defaultWrongPodCIDR
	}
	p = p.Masked()
	const bits = 24 // of a node's IPv4 range, Kubernetes' default
	address, err := netip.ParseAddr(ip)
	if err != nil || !p.Addr().Is4() || p.Bits() > 16 {
		return p, true
	}
	b, host := p.Addr().As4(), address.AsSlice()
	b[2] = host[len(host)-1]
	return netip.PrefixFrom(netip.AddrFrom4(b), bits), true
}

// meshGone tells whether the fault mesh-gone keeps everybody from the cluster's mesh API server.
func (l *LoadBalancers) meshGone() bool {
	return l.cluster.Faults.IsActive(fault.MeshGone, l.cluster.Name)
}
