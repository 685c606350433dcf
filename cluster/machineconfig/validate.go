package machineconfig

import (
	"errors"
	"fmt"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
)

// metal is Talos's strictest mode of validation, that of a machine with a disk that Talos is installed to.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }

// Validate renders the whole configuration of every machine, with stand-ins for the machine secrets, and has Talos's own
// machinery validate it. It returns all problems; nil means that every machine accepts what Render returns. Problems of a machine begin
// with its name. Problems of the user's patches and of kubelet's flags are as CheckPatches returns them, but secrets in patches are no
// problem.
func Validate(declared *cluster.Cluster) error {
	c := model{*declared}
	var errs []error
	for _, machine := range c.Machines() {
		full, _, err := withoutUserPatches(c, machine)
		if err == nil {
			err = errors.Join(validated(full)...)
		}
		errs = append(errs, prefixed(machine.Name, err))
	}
	for _, violation := range append(c.checkKubeletFlags(), c.checkOwned()...) {
		errs = append(errs, violation)
	}
	return errors.Join(errs...)
}

// prefixed puts the node's name before each of the problems that one error joins.
func prefixed(node string, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(xslices.Map(problems(err), func(problem error) error { return fmt.Errorf("node %s: %w", node, problem) })...)
}

// problems returns the errors that errors.Join and machinery's multierror have joined.
func problems(err error) []error {
	var parts []error
	switch joined := err.(type) { //nolint:errorlint // only the outermost layer is a list
	case interface{ Unwrap() []error }:
		parts = joined.Unwrap()
	case interface{ WrappedErrors() []error }:
		parts = joined.WrappedErrors()
	default:
		return []error{err}
	}
	return xslices.FlatMap(parts, problems)
}
