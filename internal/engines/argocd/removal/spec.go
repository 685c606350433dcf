package removal

import (
	"cmp"
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec says which cluster's Applications are to go. The run of a removed resource reads the Spec of the last run of `up`, so a key can be
// added, and none can be removed.
type Spec struct {
	probe.Target
	Namespace string `json:"namespace,omitempty"` // of Argo CD and its Applications; "" means argocd
	Root      string `json:"root,omitempty"`      // root Application; "" means root

	// Delete makes Argo CD remove everything that the root Application and the Applications below it have applied. Without it, everything
	// stays.
	Delete bool `json:"delete,omitempty"`
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Timeout = probe.Duration(s.Timeout.Or(engines.RemovalTimeout))
	s.Namespace = cmp.Or(s.Namespace, cluster.ArgoCDNamespace)
	s.Root = cmp.Or(s.Root, cluster.ArgoCDRoot)
}

// Report is the result of a run after which no Application is left. It holds no secret.
type Report struct {
	probe.Head
	Removed  []string `json:"removed,omitempty"`  // objects that are gone with what they had applied, "Kind namespace/name"
	Released []string `json:"released,omitempty"` // objects that are gone, and what they had applied stays
	Stays    []string `json:"stays,omitempty"`    // with Spec.Delete, what is not removed by intent, and why
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	switch {
	case len(r.Removed)+len(r.Released) == 0:
		return "Argo CD has nothing to remove"
	case len(r.Removed) == 0:
		return fmt.Sprintf("what Argo CD has applied stays; objects of Argo CD that are gone after %s: %d", r.After(), len(r.Released))
	}
	return fmt.Sprintf("Argo CD has removed what it had applied after %s; objects of Argo CD that are gone: %d", r.After(),
		len(r.Removed)+len(r.Released))
}

// Text implements probe.Report.
func (r Report) Text() string {
	return fmt.Sprintf("removal of Argo CD's Applications in %s: %s\n", r.Cluster, r.Sentence()) +
		probe.Lines("  removed   ", r.Removed) + probe.Lines("  released  ", r.Released) + probe.Lines("  stays     ", r.Stays)
}
