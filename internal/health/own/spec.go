package own

import (
	"errors"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
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
	problems := []error{cluster.ValidateChecks(s.Checks)}
	if len(s.Checks) == 0 {
		problems = append(problems, errors.New("checks: is empty; declare at least one"))
	}
	return errors.Join(problems...)
}
