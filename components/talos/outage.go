package talos

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// runs reports whether the cluster runs, or has run in this run: its only control plane may be in its turn. It does not run if every
// control plane says that its etcd does not, for longer than one that boots, such as after a run that was killed. One that does not answer
// is not awaited here: the turn waits for it.
func (t *turns) runs(ctx context.Context) bool {
	if t.ran.Load() || t.mayRun(ctx) {
		return true
	}
	t.looks.Lock()
	defer t.looks.Unlock()
	if !t.idle {
		t.idle = t.engine.Until(ctx, turn.SilentTimeout, 0, "etcd", func(ctx context.Context) (string, error) {
			if !t.mayRun(ctx) {
				return "no control plane runs etcd", nil
			}
			return "", nil
		}) != nil
	}
	return !t.idle || t.ran.Load() || t.mayRun(ctx)
}

// mayRun asks the control planes for etcd. One that does not answer may run it.
func (t *turns) mayRun(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	planes := turn.ControlPlanes(t.declared.Nodes)
	runs := make([]bool, len(planes))
	probe.Each(planes, func(i int, node turn.Node) {
		idle := false
		if configured, err := t.cluster.Configured(ctx, node); err == nil {
			seen, err := t.cluster.Machine(ctx, node)
			idle = !configured || err == nil && !seen.Runs("etcd")
			if configured && err == nil && !idle {
				t.ran.Store(true)
			}
		}
		runs[i] = !idle
	})
	return slices.Contains(runs, true)
}

// actAlone makes the part of a change that comes before the update, on a node of a cluster that does not run, and waits until the node has
// rebooted, if it reboots: the change may fix the cluster.
func (t *turns) actAlone(ctx context.Context, change turn.Change) error {
	if change.Act == nil {
		return change.Undrained(ctx)
	}
	node := change.Node
	before, err := t.cluster.Machine(ctx, node)
	if err == nil {
		err = change.Act(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	if !change.Reboots {
		return nil
	}
	return t.engine.Until(ctx, t.declared.ReturnTimeout.Duration, 0, node.Name+"'s reboot", func(ctx context.Context) (string, error) {
		switch seen, err := t.cluster.Machine(ctx, node); {
		case err != nil:
			return "its Talos API does not answer: " + err.Error(), nil
		case seen.Boot == before.Boot:
			return "it has not rebooted yet", nil
		}
		return "", nil
	})
}
