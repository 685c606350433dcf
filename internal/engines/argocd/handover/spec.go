package handover

import (
	"cmp"
	"errors"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// Spec is what Argo CD must have done before a cluster counts as handed over.
type Spec struct {
	health.Target
	Namespace string `json:"namespace,omitempty"` // of Argo CD; "" means argocd
	Root      string `json:"root,omitempty"`      // root Application; "" means root
	URL       string `json:"url,omitempty"`       // repository that the root must have; "" means any
	Ref       string `json:"ref,omitempty"`       // what the root must follow, e.g. main or refs/heads/main; "" means any
	Path      string `json:"path,omitempty"`      // the root must apply it, e.g. kubernetes/clusters/infra; "" means any
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Target.SetDefaults()
	s.Namespace = cmp.Or(s.Namespace, cluster.ArgoCDNamespace)
	s.Root = cmp.Or(s.Root, cluster.ArgoCDRoot)
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	return errors.Join(s.Target.Validate(), health.CheckURL(s.URL, "repository"))
}
