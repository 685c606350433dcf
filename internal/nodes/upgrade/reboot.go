package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// bootedBefore returns the nodes of a cluster that have booted before the declared time, control planes first.
func (j *job) bootedBefore(ctx context.Context, seen view) ([]turn.Node, error) {
	if j.BootedSince.IsZero() {
		return nil, nil
	}
	var nodes, late []turn.Node
	for _, running := range seen.running() {
		nodes = append(nodes, running.Node)
	}
	slices.SortStableFunc(nodes, turn.ByRole)
	booted, errs := make([]time.Time, len(nodes)), make([]error, len(nodes))
	probe.Each(nodes, func(i int, node turn.Node) { booted[i], errs[i] = j.Booted(ctx, node) })
	for i, node := range nodes {
		if errs[i] != nil {
			return nil, fmt.Errorf("%s: it is not known when it has booted: %w", node.Name, errs[i])
		}
		if booted[i].Before(j.BootedSince) {
			late = append(late, node)
		}
	}
	return late, nil
}

// rebootNode reboots a node in its turn, unless it has booted since the declared time by now: an upgrade of Talos reboots, too.
func (j *job) rebootNode(ctx context.Context, node turn.Node) error {
	booted, err := j.Booted(ctx, node)
	if err != nil || !booted.Before(j.BootedSince) {
		return err
	}
	err = j.engine.Take(ctx, turn.Change{
		Node: node, Of: "the boot", Drains: true, Reboots: true, Act: func(ctx context.Context) error { return j.Reboot(ctx, node) },
	})
	if err != nil {
		return err
	}
	if booted, err = j.Booted(ctx, node); err == nil && booted.Before(j.BootedSince) {
		err = fmt.Errorf("it has rebooted, and says that it has booted at %s, before %s: is its clock right?",
			booted.Format(time.RFC3339), j.BootedSince.Format(time.RFC3339))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report.Rebooted = append(j.report.Rebooted, node.Name)
	return nil
}
