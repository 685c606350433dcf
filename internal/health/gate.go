package health

// GateChecks are the checks of a gate, in the order in which a cluster comes up: what fails first is usually the cause of the rest.
func GateChecks(spec *GateSpec) []Check[*Cluster] {
	return []Check[*Cluster]{
		talosAnswers(spec),
		talosServices(spec),
		etcdMembers(spec),
		etcdHealthy(spec),
		apiServerReady(),
		talosRanges(spec),
		serviceRanges(spec),
		nodesRegistered(spec),
		nodeAddresses(spec),
		podRanges(spec),
		ciliumRollout(spec),
		ciliumConfig(spec),
		ciliumAgents(spec),
		ciliumOperator(spec),
		nodesReady(spec),
		ciliumStatus(spec),
		ciliumReachability(spec),
		ciliumRanges(spec),
	}
}
