package talos

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
)

// errOff ends a wait because the machine was powered off or rebooted.
var errOff = errors.New("machine is off")

// sleep waits for d, or returns an error when the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	if !wait.Pause(ctx, d) {
		return errOff
	}
	return nil
}

// waitUntil waits for a condition. It evaluates the condition with the site's mutex held, after each change in the
// site.
func (s *Site) waitUntil(ctx context.Context, ready func() bool) error {
	locked := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return ready()
	}
	if !s.change.Until(ctx, locked) {
		return errOff
	}
	return nil
}
