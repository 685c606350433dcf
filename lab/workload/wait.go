package workload

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// CheckInterval is how often a simulated program checks again what it waits for.
const CheckInterval = 250 * time.Millisecond

// Pause waits for d. It returns false if ctx ends before.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RetryUntilOK calls check repeatedly until it returns nil, and then calls then. It logs each error once.
func RetryUntilOK(ctx context.Context, c Container, check func() error, then func()) {
	last := ""
	for {
		err := check()
		if err == nil {
			then()
			return
		}
		if text := err.Error(); text != last && ctx.Err() == nil {
			last = text
			fmt.Fprintf(c.Log, "not ready: %s\n", strings.ReplaceAll(text, "\n", "; "))
		}
		if !Pause(ctx, CheckInterval) {
			return
		}
	}
}

// Repeat calls act every interval until ctx ends, and logs its errors.
func Repeat(ctx context.Context, c Container, interval time.Duration, act func() error) {
	for {
		if err := act(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(c.Log, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if !Pause(ctx, interval) {
			return
		}
	}
}

// Poke wakes the receiver of a channel that holds one value. A receiver that was woken already is not woken twice.
func Poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
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

// Notify closes the channel that Changed has returned.
func (c *Changes) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
	}
	c.next = nil
}
