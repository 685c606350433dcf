package turn

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Node is a machine of the cluster, as it is declared.
type Node struct {
	Name       string       `json:"name,omitempty"`       // of its Node object and its etcd member
	Role       cluster.Role `json:"role"`                 // controlplane or worker
	Address    netip.Addr   `json:"address"`              // of its Talos API
	Address6   netip.Addr   `json:"address6,omitzero"`    // its second, IPv6; invalid if it has none, or if it is not known
	Generation int          `json:"generation,omitempty"` // of the machine, which a greater one replaces; 0 means that it is not known
	VM         int          `json:"vm,omitempty"`         // id of the machine at its hypervisor; 0 means that it is not known
	MAC        cluster.MAC  `json:"mac,omitempty"`        // of the machine's network card; "" means that it is not known

	DiskEncryption cluster.DiskEncryption `json:"diskEncryption,omitempty"` // of the installed disks; "" means that it is not known
}

// NodesOf returns declared machines as nodes.
func NodesOf(machines []cluster.Machine) []Node {
	return xslices.Map(machines, func(machine cluster.Machine) Node {
		return Node{Name: machine.Name, Role: machine.Role, Address: machine.Address}
	})
}

// IsControlPlane reports whether the node is a control plane.
func (n Node) IsControlPlane() bool { return n.Role == cluster.ControlPlane }

// check returns what is wrong with a node of a spec.
func (n Node) check(path string) error {
	problems := []error{probe.Required(path+".name", n.Name, "give the node's name")}
	if !n.Address.IsValid() {
		problems = append(problems, fmt.Errorf("%s.address: is empty; give the address of its Talos API", path))
	}
	if n.Role != cluster.ControlPlane && n.Role != cluster.Worker {
		problems = append(problems, fmt.Errorf("%s.role: %q is not a role; use %s or %s", path, n.Role, cluster.ControlPlane, cluster.Worker))
	}
	return errors.Join(problems...)
}

// CheckNodes returns every problem of the nodes of a spec.
func CheckNodes(nodes []Node) error {
	var problems []error
	if len(ControlPlanes(nodes)) == 0 {
		problems = append(problems, errors.New("nodes: has no control plane; list every node"))
	}
	names := map[string]bool{}
	for i, node := range nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		problems = append(problems, node.check(path))
		if names[node.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %s is taken; names are unique", path, node.Name))
		}
		names[node.Name] = true
	}
	return errors.Join(problems...)
}

// ControlPlanes returns the control planes in the order of the nodes.
func ControlPlanes(nodes []Node) []Node { return xslices.Filter(nodes, Node.IsControlPlane) }

// Addresses returns the addresses of nodes.
func Addresses(nodes []Node) []netip.Addr {
	return xslices.Map(nodes, func(node Node) netip.Addr { return node.Address })
}

// First asks all at once, and returns the first answer, or the first error: a machine that is dead answers last. Some may still be asked
// when it returns.
func First[N, T any](all []N, ask func(N) (T, error)) (first T, err error) {
	type answer struct {
		is  T
		err error
	}
	answers := make(chan answer, len(all))
	for _, one := range all {
		go func() {
			is, err := ask(one)
			answers <- answer{is, err}
		}()
	}
	problem := errors.New("there is no control plane to ask")
	for i := range all {
		one := <-answers
		if one.err == nil {
			return one.is, nil
		}
		if i == 0 {
			problem = one.err
		}
	}
	return first, problem
}

// InParallel calls do for all nodes in their order, at most so many at once. It returns the errors, and begins nothing after the first one.
func InParallel(most int, nodes []Node, do func(Node) error) error {
	var mu sync.Mutex
	var problems []error
	next := func() (Node, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(nodes) == 0 || len(problems) > 0 {
			return Node{}, false
		}
		node := nodes[0]
		nodes = nodes[1:]
		return node, true
	}
	var all sync.WaitGroup
	for range most {
		all.Go(func() {
			for node, ok := next(); ok; node, ok = next() {
				if err := do(node); err != nil {
					mu.Lock()
					problems = append(problems, err)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return errors.Join(problems...)
}

// ByRole compares nodes so that control planes come before workers.
func ByRole(a, b Node) int {
	rank := map[cluster.Role]int{cluster.Worker: 1}
	return cmp.Compare(rank[a.Role], rank[b.Role])
}

// Names returns the names of nodes in one text.
func Names(nodes []Node) string {
	return strings.Join(xslices.Map(nodes, func(node Node) string { return node.Name }), ", ")
}
