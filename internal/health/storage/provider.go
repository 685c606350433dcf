package storage

import (
	"fmt"

	"github.com/slipway-platform/slipway/internal/health"
)

var providerKnown = health.Check[*Spec, *Cluster]{
	Name: "the provider of the storage has said how to connect, or is absent",
	Looks: "a consumer's ExternalSecret of the item that the provider writes into 1Password. A provider without an item was never up, or " +
		"has not come that far: it is absent, which is listed, no volume is tried, and the gate opens all the same",
	ByHand: "kubectl -n flux-system describe externalsecret storage-monitors",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		switch {
		case spec.Connection == nil:
			return []health.Result{health.Skip("", "no connection is declared")}
		case seen.absent(spec):
			return []health.Result{health.Skip(spec.Connection.Provider, fmt.Sprintf(
				"is absent: 1Password has no item of it (ExternalSecret %s/%s); once it is up, this cluster connects by itself within minutes",
				spec.Connection.Namespace, spec.Connection.ExternalSecret))}
		}
		return []health.Result{seen.connected(spec)}
	},
}

// connected judges the ExternalSecret of a declared connection.
func (seen *Cluster) connected(spec *Spec) health.Result {
	return seen.Connection.Synced(spec.Connection.Namespace, spec.Connection.ExternalSecret)
}

// absent reports whether the provider has never written how to connect to it.
func (seen *Cluster) absent(spec *Spec) bool {
	return spec.Connection != nil && seen.Connection.NoItem(spec.Connection.Namespace, spec.Connection.ExternalSecret)
}
