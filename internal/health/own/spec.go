package own

import (
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec is what the gate of the declared checks expects: all their objects exist, and the checks hold.
type Spec struct {
	health.Target
	Checks []cluster.Check `json:"checks"`
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error { return errors.Join(s.Target.Validate(), s.ValidateDeclared()) }

// ValidateDeclared returns every problem of what is declared.
func (s *Spec) ValidateDeclared() error {
	problems := []error{Validate(s.Checks)}
	if len(s.Checks) == 0 {
		problems = append(problems, errors.New("checks: is empty; declare at least one"))
	}
	return errors.Join(problems...)
}

// Validate returns every problem of checks in a spec.
func Validate(checks []cluster.Check) error {
	var problems []error
	names := map[string]bool{}
	for i, check := range checks {
		path := fmt.Sprintf("checks[%d]", i)
		problems = append(problems,
			probe.Required(path+".name", check.Name, "give a sentence"),
			probe.Required(path+".objects.apiVersion", check.Objects.APIVersion, "give a version such as apps/v1"),
			probe.Required(path+".objects.kind", check.Objects.Kind, "give a kind such as Deployment"))
		if _, err := check.Compile(); err != nil {
			problems = append(problems, fmt.Errorf("%s.expression: %w; correct it", path, err))
		}
		if names[check.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %s is there twice; give each check its own", path, check.Name))
		}
		names[check.Name] = true
	}
	return errors.Join(problems...)
}
