package workloads

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/health"
)

// Spec is what Helm releases have installed in a cluster, and must run before later steps.
type Spec struct {
	health.Target
	Releases []Release `json:"releases"`          // their Deployments, StatefulSets and DaemonSets must run; at least one
	Accepts  []Sample  `json:"accepts,omitempty"` // what the API must accept once they run
	Awaits   []Awaited `json:"awaits,omitempty"`  // what their controllers must have acted on
}

// Release is a Helm release.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r Release) title() string { return r.Namespace + "/" + r.Name }

// Sample is an object that the probe sends to the API as a dry run: every webhook for it is called, and nothing is created.
type Sample struct {
	Resource string          `json:"resource"` // plural name of its kind, e.g. certificates
	Object   json.RawMessage `json:"object"`   // with apiVersion, kind, namespace and name
}

// Title is the name of the sample in a report: Kind namespace/name.
func (s Sample) Title() string {
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(s.Object, &object) // Validate refuses what cannot be read
	return object.Kind + " " + object.Namespace + "/" + object.Name
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	problems := []error{s.Target.Validate()}
	if len(s.Releases) == 0 {
		problems = append(problems, errors.New("releases: is empty; name at least one Helm release"))
	}
	seen := map[Release]bool{}
	for i, release := range s.Releases {
		switch {
		case release.Namespace == "" || release.Name == "":
			problems = append(problems, fmt.Errorf("releases[%d]: %q lacks a part; give namespace and name", i, release.title()))
		case seen[release]:
			problems = append(problems, fmt.Errorf("releases[%d]: %s is there twice; name each once", i, release.title()))
		}
		seen[release] = true
	}
	for i, sample := range s.Accepts {
		problems = append(problems, sample.validate(fmt.Sprintf("accepts[%d]", i)))
	}
	for i, awaited := range s.Awaits {
		if awaited.Version == "" || awaited.Resource == "" || awaited.Kind == "" || awaited.Name == "" || awaited.Condition == "" {
			problems = append(problems, fmt.Errorf("awaits[%d]: lacks a part; give version, resource, kind, name and condition", i))
		}
	}
	return errors.Join(problems...)
}

func (s Sample) validate(path string) error {
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	switch err := json.Unmarshal(s.Object, &object); {
	case err != nil:
		return fmt.Errorf("%s.object: is not a Kubernetes object; give it as JSON", path)
	case object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "":
		return fmt.Errorf("%s.object: lacks apiVersion, kind or metadata.name; give all three", path)
	case s.Resource == "":
		return fmt.Errorf("%s.resource: is empty; give the plural of %s", path, object.Kind)
	}
	return nil
}
