package kube

import (
	"context"
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
)

// followFaults makes port 6443 of the nodes' addresses refuse connections while the fault api-server-gone is on, and by
// turns under api-server-flaps.
func (c *ControlPlane) followFaults(ctx context.Context) {
	if c.o.Faults == nil {
		return
	}
	var flapping time.Time // since when; zero: it does not
	for {
		changed := c.o.Faults.Changed()
		_, gone := c.o.Faults.Active(fault.APIServerGone, c.o.Name)
		var turn <-chan time.Time
		if f, on := c.o.Faults.Active(fault.APIServerFlaps, c.o.Name); on {
			if flapping.IsZero() {
				flapping = time.Now()
			}
			down, left := f.Flapping(time.Since(flapping))
			gone, turn = gone || down, time.After(left)
		} else {
			flapping = time.Time{}
		}
		c.reach(ctx, !gone)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-turn:
		}
	}
}

// reach makes the nodes' addresses answer, or refuse.
func (c *ControlPlane) reach(ctx context.Context, answer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = !answer
	for p := range c.listeners {
		if !answer {
			p.shut()
		} else if err := p.open(ctx); err != nil {
			c.log.Warn("API server address does not come back", "err", err)
		}
	}
}
