package gate

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.CiliumHealth = map[string]CiliumHealth{}
	for _, node := range spec.Nodes {
		report := CiliumHealth{Asked: true, Peers: map[string]CiliumPeer{}}
		for _, peer := range spec.Nodes {
			report.Peers[peer.Name] = CiliumPeer{}
		}
		seen.CiliumHealth[node.Name] = report
	}
})

var _ = fault("cilium-health-unobtainable", func(c *Cluster) {
	c.CiliumHealth["infra-cp-1"] = CiliumHealth{Asked: true, Err: "command terminated with exit code 1"}
})

var _ = fault("cilium-peer-unreachable", func(c *Cluster) {
	c.CiliumHealth["infra-cp-1"].Peers["infra-worker-1"] = CiliumPeer{Host: "ICMP to 10.25.11.21: Connection timed out"}
	c.CiliumHealth["infra-cp-1"].Peers["infra-worker-2"] = CiliumPeer{Endpoint: "HTTP to 10.244.4.7: connection refused"}
	delete(c.CiliumHealth["infra-cp-1"].Peers, "infra-cp-3")
})

var _ = fault("cilium-node-reached-by-nobody", func(c *Cluster) {
	for from, report := range c.CiliumHealth {
		if from != "infra-worker-2" {
			report.Peers["infra-worker-2"] = CiliumPeer{Endpoint: "HTTP to 10.244.4.7: connection refused"}
		}
	}
})
