package kube

import (
	"context"
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
)

// followFaults closes port 6443 of the nodes' addresses under the fault api-server-gone, and in the broken phases of
// api-server-flaps.
func (c *ControlPlane) followFaults(ctx context.Context) {
	started := time.Now()
	for {
		changed := c.o.Faults.Changed()
		closed := c.o.Faults.IsActive(fault.APIServerGone, c.o.Name)
		var nextPhase <-chan time.Time
		if f, on := c.o.Faults.Active(fault.APIServerFlaps, c.o.Name); on {
			broken, left := f.Flapping(started)
			closed, nextPhase = closed || broken, time.After(left)
		}
		c.setListening(ctx, !closed)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-nextPhase:
		}
	}
}

// setListening opens or closes port 6443 of the nodes' addresses.
func (c *ControlPlane) setListening(ctx context.Context, listen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = !listen
	for p := range c.listeners {
		if !listen {
			p.shut()
		} else if err := p.open(ctx); err != nil {
			c.log.Warn("port 6443 of a node is not opened again", "err", err)
		}
	}
}
