package externalsecrets

import "github.com/slipway-platform/slipway/internal/health"

// Spec is a store of External Secrets Operator, and the ExternalSecret that must have synced from it.
type Spec struct {
	health.Target
	Store          string `json:"store"`             // ClusterSecretStore of the ExternalSecret
	Storage        string `json:"storage,omitempty"` // ClusterSecretStore of the vault of the shared storage; "" without one
	Namespace      string `json:"namespace"`         // of the ExternalSecret
	ExternalSecret string `json:"externalSecret"`    // its newest spec must have synced
}
