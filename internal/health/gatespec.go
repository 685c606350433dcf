package health

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// What a zero duration in a spec stands for.
const (
	DefaultTimeout   = 15 * time.Minute       // longest wait for all conditions together
	DefaultStableFor = 400 * time.Millisecond // how long all conditions must have held without a break
)

// Cilium is what the gate expects of the CNI.
type Cilium struct {
	Namespace        string `json:"namespace,omitempty"`        // "" means kube-system
	AgentSelector    string `json:"agentSelector,omitempty"`    // labels of DaemonSet and agent pods; "" means k8s-app=cilium
	OperatorSelector string `json:"operatorSelector,omitempty"` // labels of Deployment and operator pods; "" means name=cilium-operator
	Version          string `json:"version,omitempty"`          // e.g. 1.18.7: agents must run the image with tag v1.18.7; "" means any
	Mode             string `json:"mode,omitempty"`             // CiliumHelm: its objects bear Helm's mark; CiliumInline: with or without; "" is not compared
	ClusterName      string `json:"clusterName,omitempty"`      // Cilium's name of the cluster; "" is not compared
	ClusterID        int    `json:"clusterID,omitempty"`        // Cilium's id of the cluster, 1 to 255; 0 is not compared
	Routing          string `json:"routing,omitempty"`          // tunnel or native; "" is not compared
}

// Who owns Cilium's objects.
const (
	CiliumHelm   = "helm"   // a Helm release
	CiliumInline = "inline" // the control planes' machine configuration
)

// GateSpec is what a cluster must be before anything is built on it.
type GateSpec struct {
	Cluster     string         `json:"cluster"`               // name, for the report
	Kubeconfig  string         `json:"kubeconfig,omitempty"`  // content; secret
	Talosconfig string         `json:"talosconfig,omitempty"` // content; secret; its endpoints are the control planes
	Nodes       []Node         `json:"nodes"`                 // all declared nodes that the gate waits for
	Others      []Node         `json:"others,omitempty"`      // declared workers it does not wait for: there or not, they are neither judged nor strangers
	Network     *Network       `json:"network,omitempty"`     // nil: the ranges in use are not compared
	Services    []string       `json:"services,omitempty"`    // Talos services that every node must have beside its own, e.g. ext-qemu-guest-agent
	Cilium      *Cilium        `json:"cilium,omitempty"`      // nil: no CNI is expected yet, and a node need only be registered
	Timeout     probe.Duration `json:"timeout,omitempty"`     // 0 means DefaultTimeout
	StableFor   probe.Duration `json:"stableFor,omitempty"`   // 0 means DefaultStableFor
}

// SetDefaults fills what was left out.
func (s *GateSpec) SetDefaults() {
	s.Timeout = probe.Duration(s.Timeout.Or(DefaultTimeout))
	s.StableFor = probe.Duration(s.StableFor.Or(DefaultStableFor))
	if c := s.Cilium; c != nil {
		c.Namespace = or(c.Namespace, "kube-system")
		c.AgentSelector = or(c.AgentSelector, "k8s-app=cilium")
		c.OperatorSelector = or(c.OperatorSelector, "name=cilium-operator")
	}
}

func (c *Cilium) validate() []error {
	var problems []error
	if c.Mode != "" && c.Mode != CiliumHelm && c.Mode != CiliumInline {
		problems = append(problems, fmt.Errorf("cilium.mode: %q is no mode; use %s or %s", c.Mode, CiliumHelm, CiliumInline))
	}
	if c.Routing != "" && c.Routing != "tunnel" && c.Routing != "native" {
		problems = append(problems, fmt.Errorf("cilium.routing: %q is no routing mode; use tunnel or native", c.Routing))
	}
	if c.ClusterID < 0 || c.ClusterID > 255 {
		problems = append(problems, fmt.Errorf("cilium.clusterID: %d is no cluster id; give 1 to 255, or 0 for any", c.ClusterID))
	}
	return problems
}

// Validate returns every problem of the spec.
func (s GateSpec) Validate() error {
	var problems []error
	require := func(path, value, remedy string) {
		if strings.TrimSpace(value) == "" {
			problems = append(problems, fmt.Errorf("%s: is empty; %s", path, remedy))
		}
	}
	require("cluster", s.Cluster, "give the cluster's name")
	require("kubeconfig", s.Kubeconfig, "give the content of a kubeconfig")
	require("talosconfig", s.Talosconfig, "give the content of a talosconfig")
	return errors.Join(append(problems, s.validateDeclared())...)
}

// validateDeclared returns every problem of what is declared, the credentials apart.
func (s GateSpec) validateDeclared() error {
	var problems []error
	if err := ValidateNodes(s.Nodes); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, validateOthers(s.Nodes, s.Others)...)
	if s.Network != nil {
		problems = append(problems, s.Network.validate()...)
	}
	if s.Cilium != nil {
		problems = append(problems, s.Cilium.validate()...)
	}
	for i, service := range s.Services {
		if service == "" {
			problems = append(problems, fmt.Errorf("services[%d]: is empty; give a Talos service's id, e.g. ext-qemu-guest-agent", i))
		}
	}
	problems = append(problems, notNegative("timeout", s.Timeout), notNegative("stableFor", s.StableFor))
	return errors.Join(problems...)
}

// Encode validates the spec and writes the JSON that the probe reads. It holds the credentials: it is a secret.
func (s GateSpec) Encode() (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	return probe.Encode(s)
}

// Public writes the spec without its credentials, for people and for the stack's outputs: what `slipway-probe gate --spec` reads.
func (s GateSpec) Public() (string, error) {
	if err := s.validateDeclared(); err != nil {
		return "", err
	}
	s.Kubeconfig, s.Talosconfig = "", ""
	return probe.Encode(s)
}

// ReadGateSpec reads a spec that may lack the credentials, and validates nothing yet.
func ReadGateSpec(r io.Reader) (*GateSpec, error) {
	spec := new(GateSpec)
	return spec, probe.Decode(r, spec)
}

// controlPlanes are the declared control planes.
func (s *GateSpec) controlPlanes() []Node {
	var nodes []Node
	for _, node := range s.Nodes {
		if node.Role == ControlPlane {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func notNegative(path string, d probe.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %s is negative; give a positive duration, or none for the default", path, d)
	}
	return nil
}

func or(value, zero string) string {
	if value == "" {
		return zero
	}
	return value
}
