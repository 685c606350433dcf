package turn

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// asksSince returns since when Rook must have asked Ceph for a turn that is awaited from now on: since now, or right after the turn of a
// node, since that node is back. While nodes are in their turns, what was known before those turns counts.
func (e *Engine) asksSince() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case len(e.taking) > 0:
		return time.Time{}
	case time.Since(e.settled) < e.Settle.Duration:
		return e.settled.Add(-e.Settle.Duration)
	}
	return time.Now()
}

// unasked returns why nobody knows yet how the storage is that a change interrupts; "" if somebody does. A node that is sick itself is
// changed all the same.
func (e *Engine) unasked(ctx context.Context, c Change, since time.Time) string {
	checks := e.Since(since, nil)
	if len(checks) == 0 || c.Quiet || !c.Leaves && (c.Awaits == Nothing || e.sickItself(ctx, c.Node)) {
		return ""
	}
	return e.unmet(ctx, checks)
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
	node, stable, since := of.Node, StableFor, time.Time{}
	if !of.Quiet {
		stable, since = max(stable, e.Settle.Duration), time.Now()
	}
	err := e.untilHeld(ctx, e.ReturnTimeout.Duration+stable, stable, "the checks after "+node.Name, e.Checks, since)
	if err != nil {
		return fmt.Errorf("%s is back, but not all is well with it: %w; no other node is changed. Fix it, and run up again", node.Name, err)
	}
	if !of.Quiet {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.settled = time.Now()
	}
	return nil
}

// untilHeld waits until checks have held without a break, and hold by what is known of the storage since a time.
func (e *Engine) untilHeld(ctx context.Context, limit, stable time.Duration, what string, checks []cluster.Check, since time.Time) error {
	err := e.Until(ctx, limit, stable, what, func(ctx context.Context) (string, error) { return e.unmet(ctx, checks), nil })
	if err != nil || len(e.Since(since, nil)) == 0 {
		return err
	}
	return e.Until(ctx, limit, 0, what, func(ctx context.Context) (string, error) { return e.unmet(ctx, e.Since(since, checks)), nil })
}
