package config

import "net/netip"

// validateLoadBalancers checks the pool and its two fixed addresses. That no machine stands in the pool is checked
// where the machines are.
func (v *validator) validateLoadBalancers() {
	const path = "network.loadBalancers"
	pool := v.Network.LoadBalancers
	start := v.inside(path+".start", pool.Start)
	stop := v.inside(path+".stop", pool.Stop)
	if start && stop && pool.Stop.Less(pool.Start) {
		v.found(path+".stop", "swap them", "%s is before %s.start %s", pool.Stop, path, pool.Start)
		return
	}
	v.pooled(path+".mesh", pool.Mesh)
	v.pooled(path+".gateway", pool.Gateway)
	v.outsidePool("network.gateway", v.Network.Gateway)
	v.outsidePool("network.vip", v.Network.VIP)
}

// pooled checks an address that a Service takes out of the pool.
func (v *validator) pooled(path string, address netip.Addr) {
	pool := v.Network.LoadBalancers
	if address.IsValid() && v.hasPool() && !between(address, pool.Start, pool.Stop) {
		v.found(path, "pick an address of the pool", "%s is outside the pool %s to %s", address, pool.Start, pool.Stop)
		return
	}
	v.address(path, address)
}

// outsidePool checks an address that no Service may be given.
func (v *validator) outsidePool(path string, address netip.Addr) {
	pool := v.Network.LoadBalancers
	if address.IsValid() && v.hasPool() && between(address, pool.Start, pool.Stop) {
		v.found(path, "pick an address outside of it, or move the pool", "%s is in the pool network.loadBalancers, %s to %s",
			address, pool.Start, pool.Stop)
	}
}

func (v *validator) hasPool() bool {
	pool := v.Network.LoadBalancers
	return pool.Start.Is4() && pool.Stop.Is4()
}
