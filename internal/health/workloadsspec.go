package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// WorkloadsSpec is what Helm releases have put into a cluster, and what must run before anything is built on it.
type WorkloadsSpec struct {
	Cluster    string         `json:"cluster"`             // name, for the report
	Kubeconfig string         `json:"kubeconfig"`          // content; secret
	Releases   []Release      `json:"releases"`            // whose Deployments, StatefulSets and DaemonSets must run; at least one
	Accepts    []Sample       `json:"accepts,omitempty"`   // what the API must be ready to take once they run
	Timeout    probe.Duration `json:"timeout,omitempty"`   // 0 means DefaultTimeout
	StableFor  probe.Duration `json:"stableFor,omitempty"` // 0 means DefaultStableFor
}

// Release is a Helm release.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r Release) title() string { return r.Namespace + "/" + r.Name }

// Sample is an object that is offered to the API as a dry run: every webhook that has a say in it is asked, and nothing is made.
type Sample struct {
	Resource string          `json:"resource"` // plural name of its kind, e.g. certificates
	Object   json.RawMessage `json:"object"`   // with apiVersion, kind, namespace and name
}

// Title is what the sample is called in a report: Kind namespace/name.
func (s Sample) Title() string {
	var object struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	_ = json.Unmarshal(s.Object, &object) // Validate has seen that it can be read
	return object.Kind + " " + object.Metadata.Namespace + "/" + object.Metadata.Name
}

// SetDefaults fills what was left out.
func (s *WorkloadsSpec) SetDefaults() {
	s.Timeout = probe.Duration(s.Timeout.Or(DefaultTimeout))
	s.StableFor = probe.Duration(s.StableFor.Or(DefaultStableFor))
}

// Validate returns every problem of the spec.
func (s WorkloadsSpec) Validate() error {
	var problems []error
	if strings.TrimSpace(s.Cluster) == "" {
		problems = append(problems, errors.New("cluster: is empty; give the cluster's name"))
	}
	if strings.TrimSpace(s.Kubeconfig) == "" {
		problems = append(problems, errors.New("kubeconfig: is empty; give the content of a kubeconfig"))
	}
	if len(s.Releases) == 0 {
		problems = append(problems, errors.New("releases: is empty; name at least one Helm release"))
	}
	seen := map[Release]bool{}
	for i, release := range s.Releases {
		switch {
		case release.Namespace == "" || release.Name == "":
			problems = append(problems, fmt.Errorf("releases[%d]: %q is half a name; give namespace and name", i, release.title()))
		case seen[release]:
			problems = append(problems, fmt.Errorf("releases[%d]: %s is there twice; name each once", i, release.title()))
		}
		seen[release] = true
	}
	for i, sample := range s.Accepts {
		problems = append(problems, sample.validate(fmt.Sprintf("accepts[%d]", i)))
	}
	problems = append(problems, notNegative("timeout", s.Timeout), notNegative("stableFor", s.StableFor))
	return errors.Join(problems...)
}

func (s Sample) validate(path string) error {
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	switch err := json.Unmarshal(s.Object, &object); {
	case err != nil:
		return fmt.Errorf("%s.object: is no Kubernetes object; give it as JSON", path)
	case object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "":
		return fmt.Errorf("%s.object: lacks apiVersion, kind or metadata.name; give all three", path)
	case s.Resource == "":
		return fmt.Errorf("%s.resource: is empty; give the plural of %s", path, object.Kind)
	}
	return nil
}

// Encode validates the spec and writes the JSON that the probe reads. It holds the credentials: it is a secret.
func (s WorkloadsSpec) Encode() (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	return probe.Encode(s)
}
