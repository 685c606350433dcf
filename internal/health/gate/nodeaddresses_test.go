package gate

import (
	"net/netip"
	"slices"
)

var _ = fault("node-of-another-address", func(c *Cluster) { c.Nodes.Items[4].Addresses = []netip.Addr{ip("192.168.1.22")} })

var _ = scenario("dual-stack-order", false, func() (*Spec, *Cluster) {
	spec := dualStack(declared())
	seen := healthy(spec)
	slices.Reverse(seen.Nodes.Items[3].Addresses)
	return spec, seen
})
