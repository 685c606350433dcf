package prune

import (
	"cmp"
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec says which cluster's Flux is to remove what it has applied. The run of a removed resource reads the Spec of the last run of `up`, so
// a key can be added, and none can be removed.
type Spec struct {
	probe.Target
	Namespace     string `json:"namespace,omitempty"`     // of the FluxInstance and the root Kustomization; "" means flux-system
	Instance      string `json:"instance,omitempty"`      // FluxInstance; "" means flux
	Kustomization string `json:"kustomization,omitempty"` // root Kustomization; "" means flux-system
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Timeout = probe.Duration(s.Timeout.Or(engines.RemovalTimeout))
	s.Namespace = cmp.Or(s.Namespace, cluster.FluxNamespace)
	s.Instance = cmp.Or(s.Instance, cluster.FluxInstance)
	s.Kustomization = cmp.Or(s.Kustomization, cluster.FluxSync)
}

// Report is the result of a run after which nothing is left that Flux should remove. It holds no secret.
type Report struct {
	probe.Head
	Removed []string `json:"removed,omitempty"` // objects of Flux that were seen and are gone, "Kind namespace/name"
	Stays   []string `json:"stays,omitempty"`   // what is not removed by intent, and why
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	if len(r.Removed) == 0 {
		return "Flux has nothing to remove"
	}
	return fmt.Sprintf("Flux has removed what it had applied after %s; objects of Flux that are gone: %d", r.After(), len(r.Removed))
}

// Text implements probe.Report.
func (r Report) Text() string {
	return fmt.Sprintf("prune of %s: %s\n", r.Cluster, r.Sentence()) +
		probe.Lines("  removed  ", r.Removed) + probe.Lines("  stays    ", r.Stays)
}
