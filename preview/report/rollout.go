package report

import (
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// engineOf returns the name of the engine that upgrades a Helm release with an owner, by the tree; "" if Pulumi does.
func engineOf(owner string) string {
	if one := cluster.Owner(owner); one.IsEngine() {
		return one.Title()
	}
	return ""
}

// cilium is the name of Cilium's release.
const cilium = chart.ReleaseName

// rollouts says which Helm releases are upgraded: Cilium and the services by up, and those that the engine owns. To these, up hands values
// last.
func (r *StackReport) rollouts() (network, services, owned []string) {
	for _, chart := range r.Charts {
		switch {
		case chart.State != Changed:
		case engineOf(chart.Owner) != "":
			owned = append(owned, chart.rollout())
		case chart.Name == cilium:
			network = append(network, chart.rollout())
		default:
			services = append(services, chart.rollout())
		}
	}
	return network, services, owned
}

// rollout says who upgrades a Helm release. While an engine owns it, `up` ignores its changes (components/internal/helm). A change of the
// owner alone restarts nothing.
func (c ChartChange) rollout() string {
	name, restarts := code(c.Name), ""
	if c.Name == cilium {
		restarts = " Its agents restart, two nodes at a time."
	}
	engine, handed := engineOf(c.Owner), slices.IndexFunc(c.Source, func(change Change) bool { return change.Path == "owner" })
	if engine == "" && handed >= 0 {
		engine = engineOf(c.Source[handed].Before)
	}
	same := len(c.Source) == 1 && len(c.Values)+c.Objects.len() == 0
	switch {
	case engineOf(c.Owner) != "" && handed < 0:
		return engine + " upgrades " + name + ", which it owns: to what Git declares once " + engine + " has fetched it, and to what follows " +
			"from the stack file once `up` has run. `up` itself does not change the release." + restarts
	case engineOf(c.Owner) != "" && same:
		return engine + " takes " + name + " over from Pulumi, for which nothing restarts."
	case engineOf(c.Owner) != "":
		return engine + " takes " + name + " over from Pulumi, and then upgrades it to what differs in Git." + restarts
	case handed >= 0 && same:
		return "Pulumi takes " + name + " back from " + engine + ", for which nothing restarts. `up` refuses until its HelmRelease is suspended."
	case handed >= 0:
		return "Pulumi takes " + name + " back from " + engine + ", and Helm upgrades it. `up` refuses until its HelmRelease is suspended." +
			restarts
	}
	return "Helm upgrades " + name + "." + restarts
}
