package externalsecrets

import (
	"errors"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec is a store of External Secrets Operator, and the ExternalSecret that must have synced from it.
type Spec struct {
	health.Target
	Store          string `json:"store"`             // ClusterSecretStore of the ExternalSecret
	Storage        string `json:"storage,omitempty"` // ClusterSecretStore of the vault of the shared storage; "" without one
	Namespace      string `json:"namespace"`         // of the ExternalSecret
	ExternalSecret string `json:"externalSecret"`    // its newest spec must have synced
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	return errors.Join(s.Target.Validate(),
		probe.Required("store", s.Store, "give the name of a ClusterSecretStore"),
		probe.Required("namespace", s.Namespace, "give the ExternalSecret's"),
		probe.Required("externalSecret", s.ExternalSecret, "give the name of an ExternalSecret"))
}
