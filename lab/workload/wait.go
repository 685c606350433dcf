package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
)

// CheckInterval is how often a simulated program checks again what it waits for.
const CheckInterval = 250 * time.Millisecond

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
		if !wait.Pause(ctx, CheckInterval) {
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
		if !wait.Pause(ctx, interval) {
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
