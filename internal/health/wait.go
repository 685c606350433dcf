package health

import (
	"context"
	"slices"
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

// defaultGrace is how long a result must stay hopeless before the wait ends: an API server that starts may refuse valid credentials for
// a moment.
const defaultGrace = 30 * time.Second

// Wait evaluates checks until all conditions hold.
type Wait struct {
	Evaluate  func() []Result
	Changed   <-chan struct{} // receives when something that Evaluate reads has changed
	Timeout   time.Duration   // 0 means DefaultTimeout
	StableFor time.Duration   // how long all conditions must hold without a break; 0 means DefaultStableFor
	Grace     time.Duration   // how long a result must stay hopeless to end the wait; 0 means 30 s
	Heartbeat time.Duration   // between two calls of Reporter.Heartbeat; 0 means 15 s
	Reporter  Reporter        // nil reports nothing
	// Once ends the wait as soon as everything has been read, whether it holds or not.
	Once bool
	// Confirm, if not nil, asks again for whatever Evaluate only remembers, and returns when the answers are in. It runs each time that
	// all conditions begin to hold, and the wait does not end open before it returned. Its context ends when a condition fails.
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
	Waited  time.Duration
	// Since is the time from when the last condition began to hold until the end; 0 unless open.
	Since time.Duration
	// Last is the condition that began to hold last; nil if all held at the first evaluation, or if not open.
	Last *Result
}

// Run waits until all conditions hold and are trusted, the timeout passes, or ctx ends. All conditions must hold for StableFor without a
// break, and each one that was lost must hold for longer (lostWindow, flapWindow). The timeout does not end a wait while all hold.
func (w Wait) Run(ctx context.Context) End {
	start := time.Now()
	timeout, stableFor := probe.Duration(w.Timeout).Or(DefaultTimeout), probe.Duration(w.StableFor).Or(DefaultStableFor)
	grace := probe.Duration(w.Grace).Or(defaultGrace)
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	heartbeat := time.NewTicker(probe.Duration(w.Heartbeat).Or(15 * time.Second))
	defer heartbeat.Stop()
	confirm := confirmation{ask: w.Confirm}
	defer confirm.stop()

	var previous []Result
	var last *Result
	var holdsSince, hopelessSince time.Time // zero while it is not so
	conditions, late := histories{}, false
	end := func(outcome Outcome, results []Result) End {
		e := End{Outcome: outcome, Results: results, Waited: time.Since(start)}
		if outcome == Open {
			e.Since, e.Last = time.Since(holdsSince), last
		} else {
			failFlapping(results)
		}
		return e
	}
	for {
		began := time.Now()
		results := w.Evaluate()
		now := time.Now()
		lost := conditions.note(now, results)
		if w.Reporter != nil {
			w.Reporter.Seen(time.Since(start), results)
		}
		if began := beganToHold(previous, results); began != nil {
			last = began
		}
		previous = results
		holds := Hold(results)
		if lost {
			holdsSince = time.Time{}
			confirm.stop()
		}
		holdsSince = since(holdsSince, now, holds)
		hopelessSince = since(hopelessSince, now, slices.ContainsFunc(results, func(r Result) bool { return r.Verdict == Failed && r.Hopeless }))
		opens := conditions.trusted(now)
		if stable := holdsSince.Add(stableFor); stable.After(opens) {
			opens = stable
		}
		confirm.set(ctx, holds)
		var wake <-chan time.Time
		switch {
		case holds && now.Before(opens):
			wake = time.After(opens.Sub(now))
		case holds && confirm.done():
			return end(Open, results)
		case holds: // the confirmation runs
		case late, w.Once && !slices.ContainsFunc(results, func(r Result) bool { return r.Unseen }):
			return end(Closed, results)
		case !hopelessSince.IsZero():
			if now.Sub(hopelessSince) >= grace {
				return end(Hopeless, results)
			}
			wake = time.After(hopelessSince.Add(grace).Sub(now))
		}
		select {
		case <-w.Changed:
			// With many nodes an evaluation takes milliseconds, and changes come by the hundred. A pause leaves the CPU to those who read
			// the cluster for two thirds of the time, and several changes are evaluated together.
			pause(ctx, 2*now.Sub(began))
		case <-confirm.returned:
			confirm.returned = nil
		case <-wake:
		case <-heartbeat.C:
			if w.Reporter != nil {
				w.Reporter.Heartbeat(time.Since(start), timeout-time.Since(start), results)
			}
		case <-deadline.C:
			late = true
		case <-ctx.Done():
			results := w.Evaluate()
			conditions.note(time.Now(), results)
			return end(Interrupted, results)
		}
	}
}

// since returns when something began to be so: the zero time if it is not so, and now if it was not so before.
func since(before, now time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d < time.Millisecond {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// beganToHold returns a result that failed in the previous evaluation and passes now; nil if there is none.
func beganToHold(previous, results []Result) *Result {
	failed := map[key]bool{}
	for _, result := range previous {
		if result.Verdict == Failed {
			failed[result.key()] = true
		}
	}
	var began *Result
	for i, result := range results {
		if result.Verdict == Passed && failed[result.key()] {
			began = &results[i]
		}
	}
	return began
}

// confirmation runs Wait.Confirm while all conditions hold.
type confirmation struct {
	ask      func(context.Context) // nil: nothing to confirm
	cancel   context.CancelFunc    // nil: not started
	returned chan struct{}         // closed when ask has returned; nil before it starts and once the wait knows
}

func (c *confirmation) set(ctx context.Context, holds bool) {
	switch {
	case !holds:
		c.stop()
	case c.cancel == nil && c.ask != nil:
		ctx, c.cancel = context.WithCancel(ctx)
		returned := make(chan struct{})
		c.returned = returned
		go func() {
			defer close(returned)
			c.ask(ctx)
		}()
	}
}

func (c *confirmation) done() bool { return c.ask == nil || c.cancel != nil && c.returned == nil }

func (c *confirmation) stop() {
	if c.cancel != nil {
		c.cancel()
	}
	c.cancel, c.returned = nil, nil
}
