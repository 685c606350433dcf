package turn

import (
	"context"
	"fmt"
)

// unmet returns which check of the stack file fails; "" if none.
func (e *Engine) unmet(ctx context.Context) string {
	if len(e.Checks) == 0 {
		return ""
	}
	missing, err := e.Cluster.Unmet(ctx, e.Checks)
	if err != nil {
		return "the checks of the stack file cannot be read: " + err.Error()
	}
	return missing
}

// forbids returns which check of the stack file keeps a node from its turn; "" if none. A node that is sick itself is changed all the same:
// that may be what fixes the cluster. A check may fail because of the nodes that are in their turns: then the wait lasts as long as those.
func (e *Engine) forbids(ctx context.Context, node Node) (missing string, err error) {
	missing = e.unmet(ctx)
	if missing == "" {
		return "", nil
	}
	if machine, err := e.Cluster.Machine(ctx, node); err != nil || machine.Problem() != "" {
		return "", nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.taking) > 0 {
		e.disturbed = missing
		return "", errOvertaken
	}
	return missing, nil
}

// awaitChecks waits until the checks of the stack file hold again after the turn of a node.
func (e *Engine) awaitChecks(ctx context.Context, of Change) error {
	node, stable := of.Node, StableFor
	if !of.Quiet {
		stable = max(stable, e.Settle.Duration)
	}
	err := e.Until(ctx, e.ReturnTimeout.Duration+stable, stable, "the checks after "+node.Name, func(ctx context.Context) (string, error) {
		return e.unmet(ctx), nil
	})
	if err != nil {
		return fmt.Errorf("%s is back, but not all is well with it: %w; no other node is changed. Fix it, and run up again", node.Name, err)
	}
	return nil
}
