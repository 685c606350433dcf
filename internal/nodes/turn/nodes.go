package turn

import (
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
)

// CheckNodes returns every problem of the nodes of a spec.
func CheckNodes(nodes []Node) error {
	var problems []error
	if len(ControlPlanes(nodes)) == 0 {
		problems = append(problems, errors.New("nodes: has no control plane; list every node"))
	}
	names := map[string]bool{}
	for i, node := range nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		problems = append(problems, probe.Required(path+".name", node.Name, "give the node's name"),
			probe.Required(path+".address", node.Address, "give the address of its Talos API"))
		if node.Role != cluster.ControlPlane && node.Role != cluster.Worker {
			problems = append(problems, fmt.Errorf("%s.role: %q is not a role; use %s or %s", path, node.Role, cluster.ControlPlane, cluster.Worker))
		}
		if names[node.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %s is taken; names are unique", path, node.Name))
		}
		names[node.Name] = true
	}
	return errors.Join(problems...)
}

// ControlPlanes returns the control planes in the order of the nodes.
func ControlPlanes(nodes []Node) []Node {
	var controlPlanes []Node
	for _, node := range nodes {
		if node.controlPlane() {
			controlPlanes = append(controlPlanes, node)
		}
	}
	return controlPlanes
}
