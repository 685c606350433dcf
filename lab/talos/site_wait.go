package talos

import (
	"context"
	"errors"
	"sync"
	"time"
)

// notifier lets goroutines wait for the next change. Take the channel before reading the state, then wait on it.
type notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

func (n *notifier) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *notifier) notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// errOff ends a wait because the machine was powered off or rebooted.
var errOff = errors.New("machine is off")

// sleep waits for d, or returns an error when the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errOff
	}
}

// waitUntil waits for a condition. It evaluates the condition with the site's mutex held, after each change in the
// site.
func (s *Site) waitUntil(ctx context.Context, ready func() bool) error {
	for {
		changed := s.change.changed()
		s.mu.Lock()
		ok := ready()
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errOff
		}
	}
}
