package probe

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Wait waits for a condition by looks. What can be watched is waited for by health.Wait.
type Wait struct {
	Limit  time.Duration                    // longest wait; 0 means that only the context ends the wait
	Look   time.Duration                    // longest time for one look; 0 means 10 s
	Every  time.Duration                    // between two looks; 0 means 1 s
	Stable time.Duration                    // how long the condition must hold without a break; 0 means that one look is enough
	Say    func(format string, args ...any) // prints what is missing, once for each change; nil prints nothing
}

// Until looks again and again until nothing is missing for as long as Stable. look returns what is missing, or an error that ends the wait.
// The error at the end of the wait has what was missing last.
func (w Wait) Until(ctx context.Context, what string, look func(context.Context) (missing string, err error)) error {
	if w.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.Limit, fmt.Errorf("gave up after %s", w.Limit))
		defer cancel()
	}
	ticker := time.NewTicker(cmp.Or(w.Every, time.Second))
	defer ticker.Stop()
	var since time.Time // when nothing was missing for the first time without a break
	said, last := "", "no answer yet"
	for {
		looking, done := context.WithTimeout(ctx, cmp.Or(w.Look, 10*time.Second))
		missing, err := look(looking)
		done()
		if !over(ctx) {
			switch {
			case err != nil:
				return err
			case missing != "":
				since, last = time.Time{}, missing
				if missing != said && w.Say != nil {
					said = missing
					w.Say("waits for %s: %s", what, missing)
				}
			case since.IsZero():
				since = time.Now()
			}
			if !since.IsZero() && time.Since(since) >= w.Stable {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if ctx.Err() != nil { // also if both are true: nothing is asked any more
			return fmt.Errorf("%s: %w (last: %s)", what, context.Cause(ctx), last)
		}
	}
}

// Pause returns after a time, or when ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// over reports whether the wait is over. The answer of a look that the end of the wait has cut off is no reason: its client may notice the
// deadline a moment before the context does.
func over(ctx context.Context) bool {
	const moment = 5 * time.Millisecond
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && time.Until(deadline) < moment
}
