// Package bootstrap creates the etcd cluster of a Talos Kubernetes cluster: on one control plane, exactly once, however
// often and from whatever state it is run. It imports no Pulumi; slipway-probe runs it.
//
// Talos's own guard is that a node with etcd data refuses with AlreadyExists. That answer means success here: it is what
// a run meets whose predecessor was killed after the call and before it could record the result. Beyond it, a node
// without data is only bootstrapped while no other control plane has etcd, or a replaced first node would start a
// second cluster beside the living one.
package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"

	"github.com/slipway-platform/slipway/internal/probe"
)

// DefaultTimeout is the longest wait of a Spec that states none: it covers the installation and the reboot of the
// control planes on slow disks.
const DefaultTimeout = 15 * time.Minute

// Spec says what to bootstrap, and with what credentials. It holds key material: it is handed over on stdin.
type Spec struct {
	Talosconfig   string         `json:"talosconfig"`       // client configuration, YAML; secret; required
	Node          string         `json:"node"`              // address of the control plane to bootstrap, with an optional :PORT; required
	ControlPlanes []string       `json:"controlPlanes"`     // addresses of all control planes, Node among them; required
	Timeout       probe.Duration `json:"timeout,omitempty"` // longest wait in all; 0 means DefaultTimeout
}

// Encode writes the spec as the JSON that ReadSpec reads, and checks. The text is secret.
func (s Spec) Encode() (string, error) { return probe.Encode(s) }

// ReadSpec reads and checks a spec. Its errors hold nothing of the talosconfig.
func ReadSpec(r io.Reader) (Spec, error) {
	var spec Spec
	if err := probe.Decode(r, &spec); err != nil {
		return Spec{}, err
	}
	return spec, spec.validate()
}

func (s Spec) validate() error {
	var errs []error
	if _, err := s.client(); err != nil {
		errs = append(errs, err)
	}
	if s.Node == "" {
		errs = append(errs, errors.New("node: empty; give the address of the first control plane"))
	}
	if !slices.Contains(s.ControlPlanes, s.Node) {
		errs = append(errs, fmt.Errorf("controlPlanes: %q is not among %q; list every control plane", s.Node, s.ControlPlanes))
	}
	if s.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: %s is negative", time.Duration(s.Timeout)))
	}
	return errors.Join(errs...)
}

// client parses the talosconfig. What is wrong with it is not quoted: YAML errors cite the text.
func (s Spec) client() (*clientconfig.Config, error) {
	config, err := clientconfig.FromString(s.Talosconfig)
	if err != nil || config.Contexts[config.Context] == nil {
		return nil, errors.New("talosconfig: not a Talos client configuration with a current context")
	}
	return config, nil
}
