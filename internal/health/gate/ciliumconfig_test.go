package gate

var _ = fault("cilium-of-other-settings", func(c *Cluster) {
	c.Config.Items[0].Values["cluster-id"], c.Config.Items[0].Values["ipv4-native-routing-cidr"] = "2", "10.246.0.0/16"
	delete(c.Config.Items[0].Values, "routing-mode")
})

var _ = scenario("dual-stack-cilium-off", false, func() (*Spec, *Cluster) {
	spec := dualStack(declared())
	seen := healthy(spec)
	seen.Config.Items[0].Values["enable-ipv6"] = "false"
	return spec, seen
})
