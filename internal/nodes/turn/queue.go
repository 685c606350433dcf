package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/cluster"
)

// waiting is what is known of a node that waits for its turn.
type waiting struct {
	rank   int  // nodes of a lower rank go first
	spared bool // the cluster could spare the node when it was looked at last
	begun  int  // turns that had begun when that look began
}

// errOvertaken ends a wait for the cluster, because another node has begun its turn.
var errOvertaken = errors.New("another node is in its turn")

// claim gives a node its turn as soon as the cluster can spare it. While another node of the engine is in its turn, it waits for as long as
// that takes, because turns have limits of their own; otherwise for SpareTimeout. A waiting node blocks no other node, because that node's
// change may fix the cluster.
func (e *Engine) claim(ctx context.Context, c Change) error {
	node := c.Node
	e.enter(node)
	defer e.leave(node)
	what := node.Name + "'s turn"
	for {
		err := e.Until(ctx, 0, 0, what, func(context.Context) (string, error) { return e.busy(c), e.Failed() })
		if err == nil {
			since := e.asksSince()
			err = e.Until(ctx, SpareTimeout, e.stable(c), what, func(ctx context.Context) (string, error) {
				return e.look(ctx, c, since)
			})
		}
		switch {
		case err == nil && e.take(c):
			return nil
		case err == nil, errors.Is(err, errOvertaken):
		default:
			return e.refuse(c, err)
		}
	}
}

// look returns why the cluster cannot spare a node that waits for its turn, by what is known of the storage since a time.
func (e *Engine) look(ctx context.Context, c Change, since time.Time) (missing string, err error) {
	node := c.Node
	if err := e.Failed(); err != nil {
		return "", err
	}
	if e.busy(c) != "" {
		return "", errOvertaken
	}
	begun, _ := e.recent()
	switch {
	case c.Awaits == Nothing:
	case c.Awaits == OthersWell:
		missing = e.sick(ctx, node)
	case node.IsControlPlane():
		missing, err = e.spareControlPlane(ctx, c)
	default:
		missing = e.spareWorker(ctx, c)
	}
	if missing == "" && err == nil {
		missing, err = e.forbids(ctx, c)
	}
	if missing == "" && err == nil {
		missing = e.unasked(ctx, c, since)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting[node.Name] = waiting{e.rank(node), missing == "" && err == nil, begun}
	return missing, err
}

// stable is how long the cluster must be able to spare the node of a change. One that takes nothing from it looks once. Before a node
// leaves for good, the removal of another one may not show in the checks yet. If no checks can show what the turns of others do, the nodes
// that follow another one within StableFor need not wait for as long as it did.
func (e *Engine) stable(c Change) time.Duration {
	_, recent := e.recent()
	switch {
	case c.Awaits == Spared && recent && len(e.Checks)+len(e.Leaving) == 0:
		return followFor
	case c.Leaves && (c.Awaits == Spared || len(e.Leaving) > 0):
		return max(StableFor, e.Settle.Duration)
	case c.Awaits == Spared:
		return StableFor
	}
	return 0
}

// recent returns how many turns have begun, and whether the last one has just begun and others are still in theirs.
func (e *Engine) recent() (begun int, recent bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	begun = len(e.begun)
	return begun, len(e.taking) > 0 && time.Since(e.begun[begun-1]) <= StableFor
}

// refuse ends the wait of a node that does not get its turn. After it, no other node gets one.
func (e *Engine) refuse(c Change, why error) error {
	done := "changed"
	if c.Leaves {
		done = "removed"
	}
	if err := e.Failed(); err != nil {
		return fmt.Errorf("%s is not %s: %w", c.Node.Name, done, err)
	}
	e.give(c.Node, true)
	return fmt.Errorf("%s is not %s, because the cluster cannot spare it: %w", c.Node.Name, done, why)
}

// Failed returns an error with the name of the first node whose turn has failed; nil if none has.
func (e *Engine) Failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == "" {
		return nil
	}
	return fmt.Errorf("the turn of %s has failed; fix that node, and run up again", e.failed)
}

func (e *Engine) enter(node Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[string]waiting{}
	}
	e.waiting[node.Name] = waiting{rank: e.rank(node)}
}

func (e *Engine) leave(node Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting, node.Name)
}

// take begins a node's turn, unless another one is in its turn or goes first, or has begun its turn since the cluster was looked at: that
// one was not counted.
func (e *Engine) take(c Change) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != "" || e.busyLocked(c) != "" || e.waiting[c.Node.Name].begun != len(e.begun) {
		return false
	}
	if e.taking == nil {
		e.taking = map[string]Change{}
	}
	e.taking[c.Node.Name] = c
	e.begun = append(e.begun, time.Now())
	return true
}

// give ends a node's turn.
func (e *Engine) give(node Node, failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	of := e.taking[node.Name].Of
	delete(e.taking, node.Name)
	e.disturbed = ""
	switch {
	case failed:
		e.failed = cmp.Or(e.failed, node.Name)
	case node.Role == cluster.Worker:
		if e.proven == nil {
			e.proven = map[string]bool{}
		}
		e.proven[of] = true
	}
}

// busy returns which turn of this engine a node has to wait for; "" if for none.
func (e *Engine) busy(c Change) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.busyLocked(c)
}

// busyLocked is busy for a caller that holds the mutex. A control plane takes its turn alone, and so does the first worker of each change,
// which shows what the change does; then workers as many together as may be out of service, but one with disks of the storage. Of nodes
// that the cluster can spare, control planes go first, and then each in the order of the nodes, but for those that wait for the storage.
func (e *Engine) busyLocked(c Change) string {
	node, workers, storage := c.Node, 0, false
	for name, taken := range e.taking {
		other := taken.Node
		storage = storage || e.stores(other)
		if node.IsControlPlane() || other.IsControlPlane() || name == node.Name {
			return name + " is in its turn"
		}
		workers++
		if workers >= e.atOnce() || !e.proven[c.Of] || !e.proven[taken.Of] || e.stores(node) && e.stores(other) {
			return name + " is in its turn"
		}
	}
	if e.disturbed != "" && len(e.taking) > 0 {
		return e.disturbed
	}
	for name, other := range e.waiting {
		if name != node.Name && other.spared && other.rank < e.rank(node) && !(storage && slices.Contains(e.Storage, name)) {
			return name + " goes first"
		}
	}
	return ""
}

// stores reports whether a worker may have disks of the shared storage. Of one that is not declared any more nobody knows.
func (e *Engine) stores(node Node) bool {
	declared := slices.ContainsFunc(e.Nodes, func(other Node) bool { return other.Name == node.Name })
	return slices.Contains(e.Storage, node.Name) || len(e.Storage) > 0 && !declared
}

// atOnce returns how many workers may be out of service at once.
func (e *Engine) atOnce() int { return e.MaxUnavailable.Of(len(e.Nodes) - len(ControlPlanes(e.Nodes))) }

// InOrder calls do for nodes that come with the control planes first: for one control plane after the other, and then for as many workers
// at once as may be out of service. After the first error, no further node begins.
func (e *Engine) InOrder(nodes []Node, do func(Node) error) error {
	controlPlanes := ControlPlanes(nodes)
	for _, node := range controlPlanes {
		if err := do(node); err != nil {
			return err
		}
	}
	return InParallel(e.atOnce(), nodes[len(controlPlanes):], do)
}

// rank returns a node's place in the order of the turns.
func (e *Engine) rank(node Node) int {
	rank := slices.IndexFunc(e.Nodes, func(other Node) bool { return other.Name == node.Name })
	if node.Role == cluster.Worker {
		rank += len(e.Nodes)
	}
	return rank
}

// leaving returns the undeclared nodes that are in their turns, but one.
func (e *Engine) leaving(but Node) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for name := range e.taking {
		if name != but.Name && !slices.ContainsFunc(e.Nodes, func(node Node) bool { return node.Name == name }) {
			names = append(names, name+" is being removed")
		}
	}
	slices.Sort(names)
	return names
}

// inTurn reports whether a node is in its turn.
func (e *Engine) inTurn(node Node) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, is := e.taking[node.Name]
	return is
}
