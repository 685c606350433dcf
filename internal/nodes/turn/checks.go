package turn

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
)

// Unmet returns which of the checks fails, of those that a cluster is asked for; "" if none.
func Unmet(ctx context.Context, ask func(context.Context, []cluster.Check) (string, error), checks []cluster.Check) string {
	if len(checks) == 0 {
		return ""
	}
	missing, err := ask(ctx, checks)
	if err != nil {
		return "the checks of the stack file cannot be read: " + err.Error()
	}
	return missing
}

func (e *Engine) unmet(ctx context.Context, checks []cluster.Check) string {
	return Unmet(ctx, e.Cluster.Unmet, checks)
}

// forbids returns which check keeps a node from its turn; "" if none. A node that is sick itself is changed all the same: that may be what
// fixes the cluster. It is removed if what it leaves behind holds. A check may fail because of the nodes that are in their turns: then the
// wait lasts as long as those.
func (e *Engine) forbids(ctx context.Context, c Change) (missing string, err error) {
	if c.Awaits == Nothing && !c.Leaves {
		return "", nil
	}
	if missing = e.unmet(ctx, e.Checks); missing == "" {
		return "", nil
	}
	forGood := ""
	if c.Leaves {
		forGood = e.unmet(ctx, e.Leaving)
	}
	if c.Awaits == Nothing || e.sickItself(ctx, c.Node) {
		if missing = forGood; missing == "" {
			return "", nil
		}
	}
	if left := e.readmit(ctx, c.Node); left != "" {
		missing += "; " + left
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.taking) > 0 {
		e.disturbed = missing
		return "", errOvertaken
	}
	return missing, nil
}

// readmit uncordons the nodes that an earlier run has left cordoned, once they are healthy, the one that waits included: what was evicted
// from them may be what a check misses, and a pod that runs on that node only, such as a monitor of Ceph, has no other place. It returns
// which nodes stay cordoned, and why; "" if none does.
func (e *Engine) readmit(ctx context.Context, waits Node) string {
	nodes, err := e.Cluster.Nodes(ctx)
	if err != nil {
		return "the Kubernetes API does not answer: " + err.Error()
	}
	own := slices.Clone(e.Nodes)
	if !slices.ContainsFunc(own, func(node Node) bool { return node.Name == waits.Name }) { // it is being removed
		own = append(own, waits)
	}
	var reasons []string
	for _, node := range own {
		if at := nodes[node.Name]; !at.Ours || !at.Unschedulable || e.inTurn(node) {
			continue
		}
		if problem := e.left(ctx, node); problem != "" {
			reasons = append(reasons, node.Name+": "+problem)
		}
	}
	return list(reasons)
}

// sickItself reports whether a node does not answer, or says that it is not well.
func (e *Engine) sickItself(ctx context.Context, node Node) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	machine, err := e.Cluster.Machine(ctx, node)
	return err != nil || machine.Problem() != ""
}

// awaitChecks waits until the checks of the stack file hold again after the turn of a node.
func (e *Engine) awaitChecks(ctx context.Context, of Change) error {
	node, stable := of.Node, StableFor
	if !of.Quiet {
		stable = max(stable, e.Settle.Duration)
	}
	err := e.Until(ctx, e.ReturnTimeout.Duration+stable, stable, "the checks after "+node.Name, func(ctx context.Context) (string, error) {
		return e.unmet(ctx, e.Checks), nil
	})
	if err != nil {
		return fmt.Errorf("%s is back, but not all is well with it: %w; no other node is changed. Fix it, and run up again", node.Name, err)
	}
	return nil
}
