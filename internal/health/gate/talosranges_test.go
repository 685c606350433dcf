package gate

var _ = fault("talos-of-other-ranges", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		n.Ranges = &ControllerRanges{PodCIDRs: []string{"10.99.0.0/16"}, ServiceCIDRs: n.Ranges.ServiceCIDRs}
	}, "infra-cp-1")
})
