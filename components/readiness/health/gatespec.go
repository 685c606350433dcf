package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
)

// How the Pulumi program runs the probe, from the project's directory; the spec goes to its standard input.
const (
	GateCommand     = "go run ./components/readiness/cmd/slipway-probe gate"
	HandoverCommand = "go run ./components/readiness/cmd/slipway-probe handover"
)

// What a zero duration in a spec stands for.
const (
	DefaultTimeout   = 15 * time.Minute       // longest wait for all conditions together
	DefaultStableFor = 400 * time.Millisecond // how long all conditions must have held without a break
)

// Role is a node's part in the cluster.
type Role string

// The roles, spelled as Talos does.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// Node is a declared machine of the cluster.
type Node struct {
	Name    string `json:"name"`    // Kubernetes node name, also the name of its etcd member
	Role    Role   `json:"role"`    // controlplane or worker
	Address string `json:"address"` // IP address by which the Talos API reaches it
}

// Cilium is what the gate expects of the CNI.
type Cilium struct {
	Namespace        string `json:"namespace,omitempty"`        // "" means kube-system
	AgentSelector    string `json:"agentSelector,omitempty"`    // labels of DaemonSet and agent pods; "" means k8s-app=cilium
	OperatorSelector string `json:"operatorSelector,omitempty"` // labels of Deployment and operator pods; "" means name=cilium-operator
	Version          string `json:"version,omitempty"`          // e.g. 1.18.7: agents must run the image with tag v1.18.7; "" means any
}

// GateSpec is what a cluster must be before anything is built on it.
type GateSpec struct {
	Cluster     string   `json:"cluster"`             // name, for the report
	Kubeconfig  string   `json:"kubeconfig"`          // content; secret
	Talosconfig string   `json:"talosconfig"`         // content; secret; its endpoints are the control planes
	Nodes       []Node   `json:"nodes"`               // all declared nodes
	Cilium      *Cilium  `json:"cilium,omitempty"`    // nil: no CNI is expected yet, and a node need only be registered
	Timeout     Duration `json:"timeout,omitempty"`   // 0 means DefaultTimeout
	StableFor   Duration `json:"stableFor,omitempty"` // 0 means DefaultStableFor
}

// ParseGateSpec reads a spec strictly, fills its defaults and validates it.
func ParseGateSpec(r io.Reader) (*GateSpec, error) {
	spec := new(GateSpec)
	if err := decode(r, spec); err != nil {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	spec.SetDefaults()
	return spec, nil
}

// SetDefaults fills what was left out.
func (s *GateSpec) SetDefaults() {
	s.Timeout = Duration(s.Timeout.or(DefaultTimeout))
	s.StableFor = Duration(s.StableFor.or(DefaultStableFor))
	if c := s.Cilium; c != nil {
		c.Namespace = or(c.Namespace, "kube-system")
		c.AgentSelector = or(c.AgentSelector, "k8s-app=cilium")
		c.OperatorSelector = or(c.OperatorSelector, "name=cilium-operator")
	}
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
	if err := ValidateNodes(s.Nodes); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, notNegative("timeout", s.Timeout), notNegative("stableFor", s.StableFor))
	return errors.Join(problems...)
}

// ValidateNodes returns every problem of a list of declared nodes.
func ValidateNodes(nodes []Node) error {
	var problems []error
	if len(nodes) == 0 {
		problems = append(problems, errors.New("nodes: is empty; declare every node of the cluster"))
	}
	names, addresses, controlPlanes := map[string]int{}, map[netip.Addr]int{}, 0
	for i, node := range nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		if node.Name == "" {
			problems = append(problems, fmt.Errorf("%s.name: is empty; give the Kubernetes node name", path))
		} else if first, twice := names[node.Name]; twice {
			problems = append(problems, fmt.Errorf("%s.name: %s is nodes[%d]'s name too; names are unique", path, node.Name, first))
		} else {
			names[node.Name] = i
		}
		switch node.Role {
		case ControlPlane:
			controlPlanes++
		case Worker:
		default:
			problems = append(problems, fmt.Errorf("%s.role: %q is no role; use %s or %s", path, node.Role, ControlPlane, Worker))
		}
		if address, err := netip.ParseAddr(node.Address); err != nil {
			problems = append(problems, fmt.Errorf("%s.address: %q is no IP address; give the one the Talos API answers on", path, node.Address))
		} else if first, twice := addresses[address]; twice {
			problems = append(problems, fmt.Errorf("%s.address: %s is nodes[%d]'s address too; addresses are unique", path, address, first))
		} else {
			addresses[address] = i
		}
	}
	if len(nodes) > 0 && controlPlanes == 0 {
		problems = append(problems, fmt.Errorf("nodes: none of %d is a control plane; declare at least one with role %s", len(nodes), ControlPlane))
	}
	return errors.Join(problems...)
}

// Encode validates the spec and writes the JSON that the probe reads. It holds the credentials: it is a secret.
func (s GateSpec) Encode() (string, error) {
	if err := s.Validate(); err != nil {
		return "", err
	}
	return encode(s)
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

func encode(spec any) (string, error) {
	text, err := json.Marshal(spec)
	return string(text), err
}

// decode reads exactly one JSON object, without unknown keys. Its errors never quote the input: it holds credentials.
func decode(r io.Reader, into any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("spec: %d bytes that are not one JSON object; see slipway-probe -h", len(text))
		}
		return fmt.Errorf("spec: %w", err)
	}
	if decoder.More() {
		return errors.New("spec: something follows the JSON object; give exactly one")
	}
	return nil
}

func notNegative(path string, d Duration) error {
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
