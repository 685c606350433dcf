package gate

var _ = fault("agent-reports-a-failure", func(c *Cluster) {
	c.CiliumStatus["infra-cp-2"] = CiliumStatus{Asked: true,
		Problems: []string{"its Kubernetes client reports a failure: connection refused"}, Remarks: []string{"controller sync has failed 7 times in a row: timeout"}}
})

var _ = fault("agent-says-nothing", func(c *Cluster) {
	c.CiliumStatus["infra-cp-2"] = CiliumStatus{Asked: true, Err: "command terminated with exit code 1"}
})
