package gate

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.CiliumStatus = map[string]CiliumStatus{}
	for i, node := range spec.Nodes {
		seen.CiliumStatus[node.Name] = CiliumStatus{Asked: true, Pools: podCIDRs(spec, i)}
	}
})

var _ = fault("agent-reports-a-failure", func(c *Cluster) {
	c.CiliumStatus["infra-cp-2"] = CiliumStatus{Asked: true,
		Problems: []string{"its Kubernetes client reports a failure: connection refused"},
		Remarks:  []string{"controller sync has failed 7 times in a row: timeout"}}
})

var _ = fault("agent-says-nothing", func(c *Cluster) {
	c.CiliumStatus["infra-cp-2"] = CiliumStatus{Asked: true, Err: "command terminated with exit code 1"}
})

var _ = fault("kubelet-without-a-certificate", func(c *Cluster) {
	c.CiliumStatus["infra-cp-2"] = CiliumStatus{Asked: true, Err: "remote error: tls: internal error"}
	c.Uncertified = map[string]string{
		"infra-cp-2": "the request csr-x for its kubelet's certificate is not approved: it is for the name other",
	}
})
