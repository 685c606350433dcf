package rotate

import (
	"context"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// unmet returns which check of the stack file fails; "" if none.
func (j *job) unmet(ctx context.Context) string { return turn.Unmet(ctx, j.Unmet, j.Checks) }

// awaitChecks waits until the checks of the stack file hold, before the first node is changed. A run that goes on does not wait: what is
// not finished may be why one fails.
func (j *job) awaitChecks(ctx context.Context, nodes []turn.Node) error {
	for _, node := range nodes {
		if now, _, err := j.Look(ctx, node); err == nil && has(now.All(), j.certificates[len(j.certificates)-1]) {
			return nil
		}
	}
	return probe.Wait{Limit: turn.SpareTimeout, Say: j.Say}.Until(ctx, "the checks", func(ctx context.Context) (string, error) {
		return j.unmet(ctx), nil
	})
}

// keepingChecks makes a change, and waits until the checks of the stack file hold again without a break, if they held before.
func (j *job) keepingChecks(ctx context.Context, after string, stable time.Duration, change func() error) error {
	held := len(j.Checks) > 0 && j.unmet(ctx) == ""
	if err := change(); err != nil || !held {
		return err
	}
	wait := probe.Wait{Limit: nodeTimeout + stable, Stable: stable, Say: j.Say}
	return wait.Until(ctx, "the checks after "+after, func(ctx context.Context) (string, error) { return j.unmet(ctx), nil })
}
