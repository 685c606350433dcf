package gate

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	onTalos(seen, func(n *TalosNode) {
		n.Ranges = &ControllerRanges{PodCIDRs: spec.Network.PodCIDRs, ServiceCIDRs: spec.Network.ServiceCIDRs}
	}, names(spec.controlPlanes())...)
})

var _ = fault("talos-of-other-ranges", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		n.Ranges = &ControllerRanges{PodCIDRs: cidrs("10.99.0.0/16"), ServiceCIDRs: n.Ranges.ServiceCIDRs}
	}, "infra-cp-1")
})
