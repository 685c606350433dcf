package turn

import (
	"context"
	"fmt"
)

// cordon makes a node unschedulable. A node that has no Node object, or that is cordoned already, stays as it is: it may have been cordoned
// by a person, or by an earlier run of this package.
func (e *Engine) cordon(ctx context.Context, node Node) error {
	nodes, err := e.nodes(ctx)
	if err != nil {
		return err
	}
	at, exists := nodes[node.Name]
	switch {
	case !exists:
		return nil
	case at.Unschedulable && !at.Ours:
		e.Say("%s: is cordoned by hand, and stays so", node.Name)
		return nil
	case at.Unschedulable:
		e.Say("%s: an earlier run has left it cordoned", node.Name)
		return nil
	}
	if err := e.Cluster.Cordon(ctx, node.Name); err != nil {
		return fmt.Errorf("cannot be cordoned: %w", err)
	}
	e.Say("%s: is cordoned", node.Name)
	return nil
}

// uncordon makes a node schedulable if this package has cordoned it.
func (e *Engine) uncordon(ctx context.Context, node Node) error {
	nodes, err := e.nodes(ctx)
	if err == nil && nodes[node.Name].Ours {
		err = e.Cluster.Uncordon(ctx, node.Name)
	}
	if err != nil {
		return fmt.Errorf("%s: stays cordoned: %w; the next run uncordons it, or: kubectl uncordon %s", node.Name, err, node.Name)
	}
	return nil
}

// undo uncordons a node that was not changed, although ctx may have ended.
func (e *Engine) undo(ctx context.Context, c Change) error {
	if c.Quiet {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	return e.uncordon(ctx, c.Node)
}
