package gate

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.Ranges.Synced = true
	for i, node := range spec.Nodes {
		seen.Ranges.Items = append(seen.Ranges.Items, Ranges{node.Name, podCIDRs(spec, i)})
	}
})

var _ = fault("cilium-node-of-another-range", func(c *Cluster) { c.Ranges.Items[4].CIDRs = cidrs("10.99.1.0/24") })

var _ = fault("cilium-agent-of-another-range", func(c *Cluster) {
	c.CiliumStatus["infra-worker-2"] = CiliumStatus{Asked: true, Pools: cidrs("10.0.3.0/24")}
})
