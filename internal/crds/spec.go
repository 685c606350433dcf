package crds

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
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

// Validate returns every problem of the spec. Its errors hold nothing of the kubeconfig.
func (s *Spec) Validate() error { return errors.Join(s.Target.Validate(), ValidateSources(s.Sources)) }

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ValidateSources returns every problem of a list of sources.
func ValidateSources(sources []Source) error {
	var problems []error
	if len(sources) == 0 {
		problems = append(problems, errors.New("sources: are empty; give at least one, or do not apply CRDs"))
	}
	names := map[string]bool{}
	for i, source := range sources {
		path := fmt.Sprintf("sources[%d]", i)
		if source.Name != "" {
			path = fmt.Sprintf("sources[%s]", source.Name)
		}
		problems = append(problems, probe.Required(path+".name", source.Name, "give the project's"),
			probe.Required(path+".version", source.Version, "give the release"))
		if source.Name != "" && names[source.Name] {
			problems = append(problems, fmt.Errorf("%s.name: is given twice; merge the two", path))
		}
		names[source.Name] = true
		if u, err := url.Parse(source.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			problems = append(problems,
				fmt.Errorf("%s.url: %q is not an https URL without user and password; give the manifest's", path, source.URL))
		}
		if source.SHA256 != "" && !checksum.MatchString(source.SHA256) {
			problems = append(problems,
				fmt.Errorf("%s.sha256: %q is not 64 hexadecimal digits in lower case; take the output of sha256sum", path, source.SHA256))
		}
	}
	return errors.Join(problems...)
}
