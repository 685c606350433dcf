package handover

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// Kinds of sources that a root Kustomization can have.
const (
	GitRepository = "GitRepository"
	OCIRepository = "OCIRepository"
	Bucket        = "Bucket"
)

// Spec is what Flux must have done before a cluster counts as handed over.
type Spec struct {
	health.Target
	Namespace     string `json:"namespace,omitempty"`     // "" means flux-system
	Instance      string `json:"instance,omitempty"`      // FluxInstance; "" means flux
	SourceKind    string `json:"sourceKind,omitempty"`    // GitRepository, OCIRepository or Bucket; "" means GitRepository
	Source        string `json:"source,omitempty"`        // source of the sync; "" means flux-system
	Kustomization string `json:"kustomization,omitempty"` // root Kustomization of the sync; "" means flux-system
	URL           string `json:"url,omitempty"`           // the source must have this URL, a bucket this server; "" means any
	// Ref is what the source must follow: main or refs/heads/main, the tag of an artifact, or the name of a bucket; "" means any.
	Ref  string `json:"ref,omitempty"`
	Path string `json:"path,omitempty"` // the root must apply it, e.g. kubernetes/clusters/infra; "" means any
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Target.SetDefaults()
	s.Namespace = cmp.Or(s.Namespace, cluster.FluxNamespace)
	s.Instance = cmp.Or(s.Instance, cluster.FluxInstance)
	s.SourceKind = cmp.Or(s.SourceKind, GitRepository)
	s.Source = cmp.Or(s.Source, cluster.FluxSync)
	s.Kustomization = cmp.Or(s.Kustomization, cluster.FluxSync)
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	problems := []error{s.Target.Validate()}
	switch s.SourceKind {
	case "", GitRepository, OCIRepository, Bucket:
	default:
		problems = append(problems, fmt.Errorf("sourceKind: %s is not a kind of source; write %s, %s or %s",
			s.SourceKind, GitRepository, OCIRepository, Bucket))
	}
	if s.SourceKind != Bucket { // which has a host
		problems = append(problems, health.CheckURL(s.URL, "source"))
	}
	return errors.Join(problems...)
}
