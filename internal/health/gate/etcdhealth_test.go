package gate

var _ = fault("etcd-split", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Leader = 3 }, "infra-cp-3")
})

var _ = fault("etcd-without-leader", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Leader = 0; n.Etcd.Errors = []string{"etcdserver: no leader"} }, "infra-cp-3")
})

var _ = fault("etcd-alarm", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Etcd.Alarms = []string{"NOSPACE of member 2"} }, controlPlaneNames...)
})
