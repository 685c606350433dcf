package health

import (
	"cmp"
	"context"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Outcome is how a wait ended.
type Outcome string

// The outcomes.
const (
	Open        Outcome = "open"        // all conditions held without a break for as long as they must
	Closed      Outcome = "closed"      // the timeout passed
	Hopeless    Outcome = "hopeless"    // ended early: waiting was unlikely to help
	Interrupted Outcome = "interrupted" // the context ended
)

// grace is how long a result must stay hopeless before the wait ends: an API server that starts may refuse valid credentials for
// a moment.
const grace = 30 * time.Second

// Wait evaluates checks until all conditions hold.
type Wait struct {
	Evaluate  func() []Result
	Changed   <-chan struct{} // receives when something that Evaluate reads has changed
	Timeout   time.Duration   // 0 means DefaultTimeout
	StableFor time.Duration   // how long all conditions must hold without a break; 0 means DefaultStableFor
	Heartbeat time.Duration   // between two calls of Reporter.Heartbeat; 0 means 15 s
	Reporter  Reporter        // nil reports nothing
	// Once ends the wait as soon as everything has been read, whether it holds or not.
	Once bool
	// Confirm, if not nil, asks again for whatever Evaluate only remembers, and returns when the answers are in. It runs each time all
	// conditions begin to hold, and the wait does not end open before it returns. Its context ends when a condition fails.
	Confirm func(context.Context)
}

// Reporter is told about a wait while it runs.
type Reporter interface {
	// Seen is called after every evaluation, changed or not.
	Seen(waited time.Duration, results []Result)
	// Heartbeat is called regularly with the newest results.
	Heartbeat(waited, left time.Duration, results []Result)
}

// End is how a wait ended.
type End struct {
	Outcome Outcome
	Results []Result
	Began   time.Time
	Waited  time.Duration
	// Since is the time from when the last condition began to hold until the end; 0 unless open.
	Since time.Duration
	// Last is the condition that began to hold last; nil if all held at the first evaluation, or if not open.
	Last *Result
}

// Run waits until all conditions hold and are trusted, the timeout passes, or ctx ends. All conditions must hold for StableFor without a
// break, and each one that was lost must hold for longer (lostWindow, flapWindow). The timeout does not end a wait while all hold.
func (w Wait) Run(ctx context.Context) End {
	r := w.begin()
	defer r.confirm.stop()
	timeout := cmp.Or(w.Timeout, DefaultTimeout)
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	heartbeat := time.NewTicker(cmp.Or(w.Heartbeat, 15*time.Second))
	defer heartbeat.Stop()
	for {
		began := time.Now()
		now := r.evaluate(ctx)
		outcome, again := r.next(now)
		if outcome != "" {
			return r.end(outcome)
		}
		var wake <-chan time.Time
		if !again.IsZero() {
			wake = time.After(again.Sub(now))
		}
		select {
		case <-w.Changed:
			// With many nodes an evaluation takes milliseconds, and changes come by the hundred. A pause leaves the CPU to those who read
			// the cluster for two thirds of the time, and several changes are evaluated together.
			if spent := now.Sub(began); spent >= time.Millisecond {
				probe.Pause(ctx, 2*spent)
			}
		case <-r.confirm.returned:
			r.confirm.returned = nil
		case <-wake:
		case <-heartbeat.C:
			if w.Reporter != nil {
				w.Reporter.Heartbeat(time.Since(r.start), timeout-time.Since(r.start), r.results)
			}
		case <-deadline.C:
			r.late = true
		case <-ctx.Done():
			return r.interrupted()
		}
	}
}
