// Package wait holds what the simulated parts of the lab wait with: for a while, or for something to change.
package wait

import (
	"context"
	"sync"
	"time"
)

// Pause waits for d. It returns false if ctx ends before.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Changes tells others that something has changed. Its zero value is ready for use. It is safe for concurrent use.
type Changes struct {
	mu   sync.Mutex
	next chan struct{}
}

// Changed returns a channel that is closed at the next change. Take it before reading.
func (c *Changes) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Until waits until done is true: it calls done now and after each change. It returns false if ctx ends before.
func (c *Changes) Until(ctx context.Context, done func() bool) bool {
	for {
		changed := c.Changed()
		if done() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Notify closes the channel that Changed has returned.
func (c *Changes) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
	}
	c.next = nil
}
