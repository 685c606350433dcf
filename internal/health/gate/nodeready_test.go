package gate

var _ = fault("node-not-ready", func(c *Cluster) {
	c.Nodes.Items[4].Ready, c.Nodes.Items[4].Reason, c.Nodes.Items[4].Message = "Unknown", "NodeStatusUnknown",
		"Kubelet stopped posting node status."
	c.Nodes.Items[4].Taints = []string{"node.kubernetes.io/unreachable:NoSchedule"}
	agentOf(c, "infra-worker-2").Ready = false
})
