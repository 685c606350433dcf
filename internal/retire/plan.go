package retire

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/turn"
)

// Plan is what becomes of the nodes that the last run knew.
type Plan struct {
	Leave []turn.Node // in the order of their removal: control planes first, because they decide whether anything may be done
	Stay  []turn.Node // in the order of the declaration
}

// NewPlan compares the nodes that were declared at the last run with those that are declared now. Its error has every reason for which
// nothing may be removed. Whether etcd keeps its quorum shows only in the running cluster.
func NewPlan(former Record, declared []turn.Node) (Plan, error) {
	var plan Plan
	var problems []error
	stays := map[string]bool{}
	for _, node := range declared {
		before, known := former.Nodes[node.Name]
		if !known {
			continue
		}
		stays[node.Name] = true
		plan.Stay = append(plan.Stay, node)
		if before.Role != node.Role {
			problems = append(problems, fmt.Errorf("nodePools: %s was a %s and is declared as a %s now; Talos does not change the role of a "+
				"machine: remove the node, and then add one with another name", node.Name, before.Role, node.Role))
		}
	}
	for _, node := range former.nodes() {
		if stays[node.Name] {
			continue
		}
		plan.Leave = append(plan.Leave, node)
		for _, other := range declared {
			if other.Address == node.Address {
				problems = append(problems, fmt.Errorf("nodePools: %s has the address %s of %s, which is not declared any more; "+
					"remove that one first, and declare the new one in the next up", other.Name, other.Address, node.Name))
			}
		}
	}
	return plan, errors.Join(append(problems, plan.controlPlanesProblem())...)
}

// controlPlanesProblem returns why the control planes that leave must not leave.
func (p Plan) controlPlanesProblem() error {
	switch leave := turn.ControlPlanes(p.Leave); {
	case len(leave) == 0:
		return nil
	case len(turn.ControlPlanes(p.Stay)) == 0:
		return fmt.Errorf("nodePools: none of the control planes that run is declared any more (%s), and the state of the cluster would be "+
			"lost; keep one until others have joined", names(leave))
	case len(leave) > 1:
		return fmt.Errorf("nodePools: %s are control planes, and one up removes one of them at most; declare the others again, and remove "+
			"them one after the other, each in an up of its own", names(leave))
	}
	return nil
}

// String says in a sentence which nodes leave; "" for none.
func (p Plan) String() string {
	switch len(p.Leave) {
	case 0:
		return ""
	case 1:
		return names(p.Leave) + " leaves the cluster before anything else is changed, and then its machine is deleted"
	}
	return names(p.Leave) + " leave the cluster, in this order, before anything else is changed, and then their machines are deleted"
}

func names(nodes []turn.Node) string {
	var list []string
	for _, node := range nodes {
		list = append(list, node.Name)
	}
	return strings.Join(list, ", ")
}

// order sorts control planes before workers, and each by name.
func order(a, b turn.Node) int {
	if a.Role != b.Role {
		if a.Role == cluster.ControlPlane {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

func sorted(nodes []turn.Node) []turn.Node {
	slices.SortFunc(nodes, order)
	return nodes
}
