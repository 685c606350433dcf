package report

import (
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// ownerFlux is the owner of a Helm release that Flux upgrades, by the tree. Otherwise Pulumi does.
const ownerFlux = string(cluster.OwnerFlux)

// cilium is the name of Cilium's release.
const cilium = chart.ReleaseName

// rollouts says which Helm releases are upgraded: Cilium and the services by up, and those that Flux owns. To these, up hands values last.
func (r *StackReport) rollouts() (network, services, flux []string) {
	for _, chart := range r.Charts {
		switch {
		case chart.State != Changed:
		case chart.Owner == ownerFlux:
			flux = append(flux, chart.rollout())
		case chart.Name == cilium:
			network = append(network, chart.rollout())
		default:
			services = append(services, chart.rollout())
		}
	}
	return network, services, flux
}

// rollout says who upgrades a Helm release. While Flux owns it, `up` ignores its changes (components/internal/helm). A change of the owner
// alone restarts nothing.
func (c ChartChange) rollout() string {
	name, restarts := code(c.Name), ""
	if c.Name == cilium {
		restarts = " Its agents restart node by node."
	}
	handed := slices.ContainsFunc(c.Source, func(change Change) bool { return change.Path == "owner" })
	same := len(c.Source) == 1 && len(c.Values)+c.Objects.len() == 0
	switch {
	case c.Owner == ownerFlux && handed && same:
		return "Flux takes " + name + " over from Pulumi, for which nothing restarts."
	case c.Owner == ownerFlux && handed:
		return "Flux takes " + name + " over from Pulumi, and then upgrades it to what differs in Git." + restarts
	case c.Owner == ownerFlux:
		return "Flux upgrades " + name + ", which it owns: to what Git declares once Flux has fetched it, and to what follows from the stack " +
			"file once `up` has run. `up` itself does not change the release." + restarts
	case handed && same:
		return "Pulumi takes " + name + " back from Flux, for which nothing restarts. `up` refuses until its HelmRelease is suspended."
	case handed:
		return "Pulumi takes " + name + " back from Flux, and Helm upgrades it. `up` refuses until its HelmRelease is suspended." + restarts
	}
	return "Helm upgrades " + name + "." + restarts
}
