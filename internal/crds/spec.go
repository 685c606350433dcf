// Package crds is what the program and slipway-probe agree on about the phase that gives a cluster its
// CustomResourceDefinitions: the specification that goes in by standard input, and the report that comes out. Package
// apply does the work.
package crds

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// DefaultTimeout is the longest wait of a Spec that states none.
const DefaultTimeout = 5 * time.Minute

// Spec says what to apply, and where. It holds a kubeconfig: it is handed over on standard input.
type Spec struct {
	Cluster    string         `json:"cluster"`           // name, for the report; required
	Kubeconfig string         `json:"kubeconfig"`        // cluster-admin kubeconfig, YAML; secret; required
	Timeout    probe.Duration `json:"timeout,omitempty"` // longest wait for all of it; 0 means DefaultTimeout
	Sources    []Source       `json:"sources"`           // at least one
}

// Source is one manifest of CustomResourceDefinitions.
type Source struct {
	Name    string `json:"name"`             // of the project, unique, e.g. "cert-manager"; required
	Version string `json:"version"`          // of the release, for the report, e.g. "v1.21.2"; required
	URL     string `json:"url"`              // https; required
	SHA256  string `json:"sha256,omitempty"` // of the manifest, 64 hexadecimal digits; "" means that any content will do
	Bundle  bool   `json:"bundle,omitempty"` // the manifest is a whole installation: what is no definition is left out, not refused
}

// Encode writes the spec as the JSON that Read reads. The text is secret.
func (s Spec) Encode() (string, error) { return probe.Encode(s) }

// Read reads and checks a spec, and sets its default. Its errors hold nothing of the kubeconfig.
func Read(r io.Reader) (Spec, error) {
	var spec Spec
	if err := probe.Decode(r, &spec); err != nil {
		return Spec{}, err
	}
	spec.Timeout = probe.Duration(spec.Timeout.Or(DefaultTimeout))
	return spec, spec.validate()
}

func (s Spec) validate() error {
	var problems []error
	if s.Cluster == "" {
		problems = append(problems, errors.New("cluster: is empty; give the cluster's name"))
	}
	if s.Kubeconfig == "" {
		problems = append(problems, errors.New("kubeconfig: is empty; give the cluster's"))
	}
	if s.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is negative; give a duration such as 5m", time.Duration(s.Timeout)))
	}
	return errors.Join(append(problems, ValidateSources(s.Sources))...)
}

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ValidateSources returns every problem of a list of sources.
func ValidateSources(sources []Source) error {
	var problems []error
	if len(sources) == 0 {
		problems = append(problems, errors.New("sources: are empty; give at least one, or leave the phase out"))
	}
	names := map[string]bool{}
	for i, source := range sources {
		path := fmt.Sprintf("sources[%d]", i)
		if source.Name != "" {
			path = fmt.Sprintf("sources[%s]", source.Name)
		}
		switch {
		case source.Name == "":
			problems = append(problems, fmt.Errorf("%s.name: is empty; give the project's", path))
		case names[source.Name]:
			problems = append(problems, fmt.Errorf("%s.name: is given twice; merge the two", path))
		}
		names[source.Name] = true
		if source.Version == "" {
			problems = append(problems, fmt.Errorf("%s.version: is empty; give the release", path))
		}
		if u, err := url.Parse(source.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			problems = append(problems, fmt.Errorf("%s.url: %q is no https URL of a manifest, without user and password; give one", path, source.URL))
		}
		if source.SHA256 != "" && !checksum.MatchString(source.SHA256) {
			problems = append(problems, fmt.Errorf("%s.sha256: %q is not 64 hexadecimal digits in lower case; take the output of sha256sum", path, source.SHA256))
		}
	}
	return errors.Join(problems...)
}
