package workloads

import (
	"encoding/json"
	"errors"

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
	_ = json.Unmarshal(s.Object, &object) // NewWorkloads of package observe refuses what cannot be read
	return object.Kind + " " + object.Namespace + "/" + object.Name
}

// Validate returns every problem of the spec but those that the checked model excludes.
func (s *Spec) Validate() error {
	problems := []error{s.Target.Validate()}
	if len(s.Releases) == 0 {
		problems = append(problems, errors.New("releases: is empty; name at least one Helm release"))
	}
	return errors.Join(problems...)
}
