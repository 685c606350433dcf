package gate

import (
	"cmp"
	"errors"
	"fmt"

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

// Validate returns every problem of what is given by hand, credentials and nodes. The rest is a part of the checked model.
func (s *Spec) Validate() error {
	problems := []error{s.Target.Validate(), probe.Required("talosconfig", s.Talosconfig, "give the content of a talosconfig")}
	for i, node := range s.Nodes {
		problems = append(problems, node.validate(fmt.Sprintf("nodes[%d]", i)))
	}
	if len(s.Nodes) == 0 {
		problems = append(problems, errors.New("nodes: is empty; declare every node of the cluster"))
	} else if len(s.controlPlanes()) == 0 {
		problems = append(problems,
			fmt.Errorf("nodes: none of %d is a control plane; declare at least one with role %s", len(s.Nodes), cluster.ControlPlane))
	}
	return errors.Join(problems...)
}

// DropCredentials removes the credentials, those of the bucket, too.
func (s *Spec) DropCredentials() {
	s.Kubeconfig, s.Talosconfig = "", ""
	if s.Backup != nil {
		s.Backup = &Backup{}
	}
}

// controlPlanes are the declared control planes.
func (s *Spec) controlPlanes() []Machine {
	return xslices.Filter(s.Nodes, func(m Machine) bool { return m.Role == cluster.ControlPlane })
}
