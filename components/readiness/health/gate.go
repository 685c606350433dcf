package health

// GateChecks are the checks of a gate, in the order in which a cluster comes up.
func GateChecks(spec *GateSpec) []Check[*Cluster] {
	return []Check[*Cluster]{
		talosServices(spec),
		etcdMembers(spec),
		apiServerReady(),
		nodesReady(spec),
		noStrangers(spec),
		ciliumRollout(spec),
		ciliumAgents(spec),
		ciliumOperator(spec),
		ciliumReachability(spec),
	}
}
