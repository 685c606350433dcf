package machineconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// metal is Talos's strictest mode of validation, that of a machine with a disk that Talos is installed to.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }

// Validate renders every node's whole configuration, with stand-ins for the machine secrets, and has Talos's own machinery
// validate it. It returns all problems; nil means that every node accepts what Render returns. Those of a node begin with its name.
// Those of the user's patches are as CheckPatches returns them. Only secrets in Patches are allowed here, because the caller may keep
// these patches secret.
func Validate(c Cluster, nodes []Node) error {
	if err := c.validateVersions(); err != nil {
		return err // without a known version, no configuration can be generated
	}
	errs := c.validate()
	for _, n := range nodes {
		if err := validateNode(c, n); err != nil {
			errs = append(errs, err)
		}
	}
	for _, violation := range checked(c, nodes, (*report).checkOwned) {
		errs = append(errs, violation)
	}
	return errors.Join(errs...)
}

// validate returns the problems that Talos's machinery does not find, because it validates one node at a time.
func (c Cluster) validate() []error {
	errs := c.Extensions.validate(c)
	if c.IPv6 != nil {
		errs = append(errs, c.IPv6.validate()...)
	}
	if pods := c.Kubelet.MaxPods; pods < 0 || pods > MaxPodsPerNode {
		errs = append(errs, fmt.Errorf("kubelet.maxPods: %d; a node has addresses for %d pods, use 1 to %d",
			pods, MaxPodsPerNode, MaxPodsPerNode))
	}
	contract, err := config.ParseContractFromVersion(c.TalosVersion)
	if err == nil {
		err = c.validateEncryption(contract)
	}
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// validateNode returns the problems of a node without the user's patches, each prefixed with its name.
func validateNode(c Cluster, n Node) error {
	if err := n.validateDisks(); err != nil {
		return prefixed(n.Name, err)
	}
	full, _, err := withoutUserPatches(c, n)
	if err != nil {
		return prefixed(n.Name, err)
	}
	return prefixed(n.Name, errors.Join(validated(full)...))
}

func (c Cluster) validateVersions() error {
	var errs []error
	if _, err := config.ParseContractFromVersion(c.TalosVersion); err != nil || !strings.HasPrefix(c.TalosVersion, "v") {
		errs = append(errs, fmt.Errorf("talos version %q: not a version; write it like v1.12.7", c.TalosVersion))
	}
	kubernetes, err := compatibility.ParseKubernetesVersion(strings.TrimPrefix(c.KubernetesVersion, "v"))
	if err != nil || !strings.HasPrefix(c.KubernetesVersion, "v") {
		errs = append(errs, fmt.Errorf("kubernetes version %q: not a version; write it like v1.35.8", c.KubernetesVersion))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: c.TalosVersion})
	if err != nil {
		return fmt.Errorf("talos version %q: %w", c.TalosVersion, err)
	}
	if err := kubernetes.SupportedWith(talos); err != nil {
		return fmt.Errorf("kubernetes version %s: %w; pick one that Talos %s supports", c.KubernetesVersion, err, c.TalosVersion)
	}
	return nil
}

// prefixed puts the node's name before each of the problems that one error joins.
func prefixed(node string, err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for _, problem := range problems(err) {
		errs = append(errs, fmt.Errorf("node %s: %w", node, problem))
	}
	return errors.Join(errs...)
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
	var all []error
	for _, part := range parts {
		all = append(all, problems(part)...)
	}
	return all
}
