package gate

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Machine is a declared machine of the cluster.
type Machine struct {
	Name     string       `json:"name"`              // Kubernetes node name, also the name of its etcd member
	Role     cluster.Role `json:"role"`              // controlplane or worker
	Address  netip.Addr   `json:"address"`           // of its Talos API, and its first node IP
	Address6 netip.Addr   `json:"address6,omitzero"` // its second node IP, IPv6; none in a cluster of one family

	Labels map[string]string `json:"labels,omitempty"` // labels that its Node object must have; others are not judged
	Taints map[string]string `json:"taints,omitzero"`  // taints of its Node object, EFFECT or VALUE:EFFECT by key; nil: not compared
}

// addresses are the node IPs in their declared order.
func (m Machine) addresses() []netip.Addr {
	if !m.Address6.IsValid() {
		return []netip.Addr{m.Address}
	}
	return []netip.Addr{m.Address, m.Address6}
}

// log asks for the log of a Talos service of the machine.
func (m Machine) log(service string) health.Question {
	return health.Question{Kind: health.ServiceLog, Name: service, Address: m.Address, Node: m.Name}
}

// Network is the declared ranges, which the ranges in use are compared with.
type Network struct {
	PodCIDRs     []netip.Prefix `json:"podCIDRs"`     // e.g. 10.244.0.0/16; in a dual-stack cluster IPv4 first, then IPv6
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs"` // likewise
}

// validate returns every problem of the machine at a path of the spec.
func (m Machine) validate(path string) error {
	problems := []error{probe.Required(path+".name", m.Name, "give the Kubernetes node name")}
	if m.Role != cluster.ControlPlane && m.Role != cluster.Worker {
		problems = append(problems, fmt.Errorf("%s.role: %q is not a role; use %s or %s", path, m.Role, cluster.ControlPlane, cluster.Worker))
	}
	if !m.Address.IsValid() {
		problems = append(problems, fmt.Errorf("%s.address: is empty; give the address of the Talos API", path))
	}
	return errors.Join(problems...)
}
