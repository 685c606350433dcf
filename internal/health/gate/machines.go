package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
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

func (n *Network) validate() []error {
	var problems []error
	for _, list := range []struct {
		path  string
		cidrs []netip.Prefix
	}{{"network.podCIDRs", n.PodCIDRs}, {"network.serviceCIDRs", n.ServiceCIDRs}} {
		if len(list.cidrs) < 1 || len(list.cidrs) > 2 {
			problems = append(problems, fmt.Errorf("%s: has %d entries; give one range, or IPv4 and IPv6", list.path, len(list.cidrs)))
		}
		for i, cidr := range list.cidrs {
			path := fmt.Sprintf("%s[%d]", list.path, i)
			switch {
			case !cidr.IsValid():
				problems = append(problems, fmt.Errorf("%s: is empty; give a range, as in 10.244.0.0/16", path))
			case cidr != cidr.Masked():
				problems = append(problems, fmt.Errorf("%s: %s has host bits set; did you mean %s?", path, cidr, cidr.Masked()))
			case i == 1 && !cidr.Addr().Is6():
				problems = append(problems, fmt.Errorf("%s: %s is not an IPv6 range; give IPv4 first, then IPv6", path, cidr))
			}
		}
	}
	if len(n.PodCIDRs) != len(n.ServiceCIDRs) {
		problems = append(problems,
			fmt.Errorf("network: %d pod ranges and %d service ranges; give both the same families", len(n.PodCIDRs), len(n.ServiceCIDRs)))
	}
	return problems
}

// validateNodes returns every problem of the nodes that the gate waits for.
func validateNodes(nodes []Machine) error {
	problems := validateMachines("nodes", nodes, nil)
	if len(nodes) == 0 {
		problems = append(problems, errors.New("nodes: is empty; declare every node of the cluster"))
	} else if !slices.ContainsFunc(nodes, func(m Machine) bool { return m.Role == cluster.ControlPlane }) {
		problems = append(problems,
			fmt.Errorf("nodes: none of %d is a control plane; declare at least one with role %s", len(nodes), cluster.ControlPlane))
	}
	return errors.Join(problems...)
}

// validateOthers returns every problem of the nodes that the gate does not wait for.
func validateOthers(nodes, others []Machine) []error {
	problems := validateMachines("others", others, nodes)
	for i, node := range others {
		if node.Role == cluster.ControlPlane {
			problems = append(problems,
				fmt.Errorf("others[%d].role: %s is a control plane; the gate waits for all control planes, list it in nodes", i, node.Name))
		}
	}
	return problems
}

// validateMachines returns every problem of one list. Names and addresses must differ from those of taken, too.
func validateMachines(list string, nodes, taken []Machine) []error {
	var problems []error
	names, addresses := map[string]string{}, map[netip.Addr]string{}
	note := func(at string, node Machine) {
		names[node.Name] = at
		for _, address := range node.addresses() {
			addresses[address] = at
		}
	}
	for i, node := range taken {
		note(fmt.Sprintf("nodes[%d]", i), node)
	}
	dualStack := slices.ContainsFunc(slices.Concat(taken, nodes), func(m Machine) bool { return m.Address6.IsValid() })
	for i, node := range nodes {
		path := fmt.Sprintf("%s[%d]", list, i)
		if node.Name == "" {
			problems = append(problems, fmt.Errorf("%s.name: is empty; give the Kubernetes node name", path))
		} else if first, twice := names[node.Name]; twice {
			problems = append(problems, fmt.Errorf("%s.name: %s is %s's name too; names are unique", path, node.Name, first))
		}
		if node.Role != cluster.ControlPlane && node.Role != cluster.Worker {
			problems = append(problems, fmt.Errorf("%s.role: %q is not a role; use %s or %s", path, node.Role, cluster.ControlPlane, cluster.Worker))
		}
		if !node.Address.IsValid() {
			problems = append(problems, fmt.Errorf("%s.address: is empty; give the address of the Talos API", path))
		} else if first, twice := addresses[node.Address]; twice {
			problems = append(problems, fmt.Errorf("%s.address: %s is %s's address too; addresses are unique", path, node.Address, first))
		}
		switch address := node.Address6; {
		case !address.IsValid() && dualStack:
			problems = append(problems,
				fmt.Errorf("%s.address6: is empty, but other nodes have one; give every node an IPv6 address, or none", path))
		case address.Is4():
			problems = append(problems,
				fmt.Errorf("%s.address6: %s is not an IPv6 address; give the node's second address, or none", path, address))
		case address.IsValid() && addresses[address] != "":
			problems = append(problems, fmt.Errorf("%s.address6: %s is %s's address too; addresses are unique", path, address, addresses[address]))
		}
		if names[node.Name] == "" {
			note(path, node)
		}
	}
	return problems
}
