package gate

var _ = fault("node-of-another-pod-range", func(c *Cluster) { c.Nodes.Items[4].PodCIDRs = cidrs("10.99.1.0/24") })

var _ = fault("node-without-pod-range", func(c *Cluster) { c.Nodes.Items[4].PodCIDRs = nil })

var _ = scenario("dual-stack-one-family", false, func() (*Spec, *Cluster) {
	spec := dualStack(declared())
	seen := healthy(spec)
	seen.Nodes.Items[3].PodCIDRs = seen.Nodes.Items[3].PodCIDRs[:1]
	return spec, seen
})
