package crds

import (
	"errors"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// DefaultTimeout is the longest wait if a Spec has none. A run fetches and applies manifests, and waits for no machine.
const DefaultTimeout = 5 * time.Minute

// Spec says which CRDs to apply to which cluster.
type Spec struct {
	probe.Target
	Sources []Source `json:"sources"` // at least one
}

// Source is one manifest of CRDs.
type Source struct {
	Name    string `json:"name"`             // of the project, unique, e.g. "cert-manager"; required
	Version string `json:"version"`          // of the release, for the report, e.g. "v1.21.2"; required
	URL     string `json:"url"`              // https; required
	SHA256  string `json:"sha256,omitempty"` // of the manifest, 64 hexadecimal digits; "" means that any content is accepted
	Bundle  bool   `json:"bundle,omitempty"` // the manifest holds a whole installation: objects that are not CRDs are left out, not refused
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() { s.Timeout = probe.Duration(s.Timeout.Or(DefaultTimeout)) }

// Validate returns every problem of the spec but those that the checked model excludes. Its errors hold nothing of the kubeconfig.
func (s *Spec) Validate() error {
	problems := []error{s.Target.Validate()}
	if len(s.Sources) == 0 {
		problems = append(problems, errors.New("sources: are empty; give at least one, or do not apply CRDs"))
	}
	return errors.Join(problems...)
}
