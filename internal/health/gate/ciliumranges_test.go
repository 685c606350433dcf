package gate

var _ = fault("cilium-node-of-another-range", func(c *Cluster) { c.Ranges.Items[4].CIDRs = []string{"10.99.1.0/24"} })

var _ = fault("cilium-agent-of-another-range", func(c *Cluster) {
	c.CiliumStatus["infra-worker-2"] = CiliumStatus{Asked: true, Pools: []string{"10.0.3.0/24"}}
})
