package health

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// HandoverSpec is what Flux must have done before a cluster counts as handed over.
type HandoverSpec struct {
	Cluster       string         `json:"cluster"`                 // name, for the report
	Kubeconfig    string         `json:"kubeconfig"`              // content; secret
	Namespace     string         `json:"namespace,omitempty"`     // "" means flux-system
	Instance      string         `json:"instance,omitempty"`      // FluxInstance; "" means flux
	Source        string         `json:"source,omitempty"`        // GitRepository of the sync; "" means flux-system
	Kustomization string         `json:"kustomization,omitempty"` // root Kustomization of the sync; "" means flux-system
	URL           string         `json:"url,omitempty"`           // the source must have this URL; "" means any
	Ref           string         `json:"ref,omitempty"`           // the source must follow it, e.g. main or refs/heads/main; "" means any
	Path          string         `json:"path,omitempty"`          // the root must apply it, e.g. kubernetes/clusters/infra; "" means any
	Timeout       probe.Duration `json:"timeout,omitempty"`       // 0 means DefaultTimeout
	StableFor     probe.Duration `json:"stableFor,omitempty"`     // 0 means DefaultStableFor
}

// SetDefaults fills what was left out.
func (s *HandoverSpec) SetDefaults() {
	s.Namespace = or(s.Namespace, "flux-system")
	s.Instance = or(s.Instance, "flux")
	s.Source = or(s.Source, "flux-system")
	s.Kustomization = or(s.Kustomization, "flux-system")
	s.Timeout = probe.Duration(s.Timeout.Or(DefaultTimeout))
	s.StableFor = probe.Duration(s.StableFor.Or(DefaultStableFor))
}

// Validate returns every problem of the spec.
func (s HandoverSpec) Validate() error {
	var problems []error
	if strings.TrimSpace(s.Cluster) == "" {
		problems = append(problems, errors.New("cluster: is empty; give the cluster's name"))
	}
	if strings.TrimSpace(s.Kubeconfig) == "" {
		problems = append(problems, errors.New("kubeconfig: is empty; give the content of a kubeconfig"))
	}
	if s.URL != "" {
		// The URL goes into reports, so it is not quoted before it is known to hold no password.
		if u, err := url.Parse(s.URL); err != nil || u.Scheme == "" {
			problems = append(problems, errors.New("url: is no URL; give the source's, e.g. https://git.home.arpa/platform/slipway.git"))
		} else if _, password := u.User.Password(); password {
			problems = append(problems, fmt.Errorf("url: %s holds a password; credentials belong into the source's Secret", u.Redacted()))
		}
	}
	problems = append(problems, notNegative("timeout", s.Timeout), notNegative("stableFor", s.StableFor))
	return errors.Join(problems...)
}

// Encode validates the spec and writes the JSON that the probe reads. It holds the credentials: it is a secret.
func (s HandoverSpec) Encode() (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	return probe.Encode(s)
}
