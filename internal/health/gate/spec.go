package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec is what a cluster must be before anything is built on it.
type Spec struct {
	health.Target
	Talosconfig string    `json:"talosconfig,omitempty"` // content; secret; its endpoints are the control planes
	Nodes       []Machine `json:"nodes"`                 // all declared nodes that the gate waits for
	Others      []Machine `json:"others,omitempty"`      // declared workers that the gate does not wait for: they are not judged
	Network     *Network  `json:"network,omitempty"`     // nil: the ranges in use are not compared
	Services    []string  `json:"services,omitempty"`    // Talos services that every node must have beside its own, e.g. ext-qemu-guest-agent
	Versions    *Versions `json:"versions,omitempty"`    // nil: the versions that run are not compared
	Cilium      *Cilium   `json:"cilium,omitempty"`      // nil: no CNI is expected yet, and a node need only be registered
	Backup      *Backup   `json:"backup,omitempty"`      // nil: no snapshots of etcd are scheduled

	// Approve approves the requests of all these nodes' kubelets for certificates. Only `up` sets it: by hand, the gate changes nothing.
	Approve bool `json:"approve,omitempty"`

	Checks []cluster.Check `json:"checks,omitempty"` // that the stack file declares; what does not exist yet fails none
}

// Versions are the declared versions, which those that run are compared with.
type Versions struct {
	Talos      string `json:"talos"`               // e.g. v1.12.7; required
	Kubernetes string `json:"kubernetes"`          // of kubelets and API servers, e.g. v1.35.8; required
	Installer  string `json:"installer,omitempty"` // image that `talosctl upgrade` installs this Talos from; "" if it is not known
}

func (v *Versions) validate() []error {
	return []error{
		probe.Required("versions.talos", v.Talos, "give Talos's version, e.g. v1.12.7"),
		probe.Required("versions.kubernetes", v.Kubernetes, "give Kubernetes's version, e.g. v1.35.8"),
	}
}

// OperatorSelector are the labels that Cilium's chart gives the operator's Deployment and its pods.
const OperatorSelector = "name=cilium-operator"

// Cilium is what the gate expects of the CNI.
type Cilium struct {
	Namespace   string             `json:"namespace,omitempty"`   // "" means kube-system
	Version     string             `json:"version,omitempty"`     // e.g. 1.18.7: agents must run image tag v1.18.7; "" means any
	Mode        cluster.CiliumMode `json:"mode,omitempty"`        // helm: its objects must have Helm's annotation; inline or "": any
	ClusterName string             `json:"clusterName,omitempty"` // Cilium's name of the cluster; "" is not compared
	ClusterID   int                `json:"clusterID,omitempty"`   // Cilium's id of the cluster, 1 to 255; 0 is not compared
	Routing     cluster.Routing    `json:"routing,omitempty"`     // tunnel or native; "" is not compared
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.Target.SetDefaults()
	if c := s.Cilium; c != nil {
		c.Namespace = cmp.Or(c.Namespace, "kube-system")
	}
}

// Validate returns every problem of the spec.
func (s *Spec) Validate() error {
	return errors.Join(s.Target.Validate(), probe.Required("talosconfig", s.Talosconfig, "give the content of a talosconfig"),
		s.ValidateDeclared())
}

// DropCredentials removes the credentials, those of the bucket, too.
func (s *Spec) DropCredentials() {
	s.Kubeconfig, s.Talosconfig = "", ""
	if s.Backup != nil {
		s.Backup = &Backup{}
	}
}

// ValidateDeclared returns every problem of what is declared.
func (s *Spec) ValidateDeclared() error {
	problems := append([]error{validateNodes(s.Nodes), cluster.ValidateChecks(s.Checks)}, validateOthers(s.Nodes, s.Others)...)
	if s.Network != nil {
		problems = append(problems, s.Network.validate()...)
	}
	if s.Versions != nil {
		problems = append(problems, s.Versions.validate()...)
	}
	if s.Cilium != nil {
		problems = append(problems, s.Cilium.validate()...)
	}
	for i, service := range s.Services {
		problems = append(problems,
			probe.Required(fmt.Sprintf("services[%d]", i), service, "give a Talos service's id, e.g. ext-qemu-guest-agent"))
	}
	return errors.Join(problems...)
}

func (c *Cilium) validate() []error {
	problems := []error{chosen("cilium.mode", "mode", c.Mode), chosen("cilium.routing", "routing mode", c.Routing)}
	if c.ClusterID < 0 || c.ClusterID > cluster.MaxClusterID {
		problems = append(problems, fmt.Errorf("cilium.clusterID: %d is not a cluster id; give 1 to %d, or 0 for any",
			c.ClusterID, cluster.MaxClusterID))
	}
	return problems
}

// chosen returns a problem if the value is neither empty nor one of its type's choices. The noun says what it should be.
func chosen[T interface {
	~string
	cluster.Choice
}](path, noun string, value T) error {
	choices := value.Choices()
	if value == "" || slices.Contains(choices, string(value)) {
		return nil
	}
	return fmt.Errorf("%s: %q is not a %s; use %s", path, value, noun, strings.Join(choices, " or "))
}

// controlPlanes are the declared control planes.
func (s *Spec) controlPlanes() []Machine {
	return xslices.Filter(s.Nodes, func(m Machine) bool { return m.Role == cluster.ControlPlane })
}

// knows reports whether a node is declared, awaited or not.
func (s *Spec) knows(node string) bool {
	named := func(m Machine) bool { return m.Name == node }
	return slices.ContainsFunc(s.Nodes, named) || slices.ContainsFunc(s.Others, named) || s.Skip.Has(node)
}
