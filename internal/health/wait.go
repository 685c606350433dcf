package health

import (
	"context"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Outcome is how a wait ended.
type Outcome string

// The outcomes.
const (
	Open        Outcome = "open"        // everything held for the stability window
	Closed      Outcome = "closed"      // the time was up
	Hopeless    Outcome = "hopeless"    // ended early: credentials or certificates are refused, and stay so
	Interrupted Outcome = "interrupted" // stopped from outside
)

// DefaultGrace is how long something hopeless is believed to be a passing state: credentials and certificates may be refused for a
// moment while an API server starts.
const DefaultGrace = 30 * time.Second

// Wait evaluates until everything holds.
type Wait struct {
	Evaluate  func() []Result
	Changed   <-chan struct{} // something that Evaluate reads has changed
	Timeout   time.Duration   // 0 means DefaultTimeout
	StableFor time.Duration   // how long everything must hold without a break; 0 means DefaultStableFor
	Grace     time.Duration   // 0 means DefaultGrace
	Heartbeat time.Duration   // between two signs of life; 0 means 15 s
	Reporter  Reporter        // nil reports nothing
	// Once ends the wait as soon as everything has been looked at, whether it holds or not.
	Once bool
	// Confirm, if not nil, asks once more for what Evaluate only remembers, and returns when the answers are in. It runs each time
	// that everything has come to hold, and no wait ends open before it has returned. Its context ends when something fails.
	Confirm func(context.Context)
}

// Reporter hears of a wait while it lasts.
type Reporter interface {
	// Seen is called with every evaluation, changed or not.
	Seen(waited time.Duration, results []Result)
	// Heartbeat is called regularly with the newest results.
	Heartbeat(waited, left time.Duration, results []Result)
}

// End is how a wait ended.
type End struct {
	Outcome Outcome
	Results []Result
	Waited  time.Duration
	// Since is the time from the last condition becoming true to the end, the stability window included; 0 unless open.
	Since time.Duration
	// Last is the condition that became true last; nil if all held at the first look.
	Last *Result
}

// Run waits until everything held for the stability window, the time is up, or ctx ends. A condition that fails in between starts the
// window again, and must then itself have held for longer. The time that is up while the window runs does not cut it short.
func (w Wait) Run(ctx context.Context) End {
	start := time.Now()
	timeout, stableFor := probe.Duration(w.Timeout).Or(DefaultTimeout), probe.Duration(w.StableFor).Or(DefaultStableFor)
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	heartbeat := time.NewTicker(probe.Duration(w.Heartbeat).Or(15 * time.Second))
	defer heartbeat.Stop()
	window, grace := newSpan(stableFor), newSpan(probe.Duration(w.Grace).Or(DefaultGrace))
	defer window.end()
	defer grace.end()
	confirm := confirmation{ask: w.Confirm}
	defer confirm.stop()

	var previous []Result
	var last *Result
	var lost flaps
	end := func(outcome Outcome, results []Result) End {
		e := End{Outcome: outcome, Results: results, Waited: time.Since(start)}
		if outcome == Open {
			e.Since, e.Last = window.age(), last
		} else {
			e.Results = distrust(results)
		}
		return e
	}
	late := false
	for {
		looking := time.Now()
		results := w.Evaluate()
		cost := time.Since(looking)
		broken := lost.note(time.Now(), results)
		if w.Reporter != nil {
			w.Reporter.Seen(time.Since(start), results)
		}
		if became := newlyPassed(previous, results); became != nil {
			last = became
		}
		previous = results
		if broken {
			window.set(false)
			confirm.stop()
		}
		window.length = max(stableFor, lost.believed(time.Now()).Sub(window.start()))
		window.set(Hold(results))
		confirm.set(ctx, window.running())
		grace.set(hopeless(results))
		switch {
		case window.over() && confirm.done():
			return end(Open, results)
		case grace.over():
			return end(Hopeless, results)
		case late && !window.running(), w.Once && !window.running() && looked(results):
			return end(Closed, results)
		}
		select {
		case <-w.Changed:
			// With many nodes an evaluation takes milliseconds, and changes come by the hundred: they are taken together, so that those
			// who look have the machine for most of the time.
			rest(ctx, 2*cost)
		case <-confirm.returned:
			confirm.returned = nil
		case <-window.timer.C:
		case <-grace.timer.C:
		case <-heartbeat.C:
			if w.Reporter != nil {
				w.Reporter.Heartbeat(time.Since(start), timeout-time.Since(start), results)
			}
		case <-deadline.C:
			late = true
		case <-ctx.Done():
			results := w.Evaluate()
			lost.note(time.Now(), results)
			return end(Interrupted, results)
		}
	}
}

// rest ends after d, or with ctx.
func rest(ctx context.Context, d time.Duration) {
	if d < time.Millisecond {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// looked reports whether everything that can be looked at has been.
func looked(results []Result) bool {
	for _, result := range results {
		if result.Unseen {
			return false
		}
	}
	return true
}

// confirmation is a last look at everything, which runs while everything holds.
type confirmation struct {
	ask      func(context.Context) // nil: nothing needs one
	cancel   context.CancelFunc
	returned chan struct{} // closed when the look has ended; nil before it starts and after that was noticed
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

func hopeless(results []Result) bool {
	for _, result := range results {
		if result.Verdict == Failed && result.Hopeless {
			return true
		}
	}
	return false
}

// newlyPassed finds a result that has stopped failing since the previous evaluation.
func newlyPassed(previous, results []Result) *Result {
	failed := map[[2]string]bool{}
	for _, result := range previous {
		if result.Verdict == Failed {
			failed[[2]string{result.Check, result.Subject}] = true
		}
	}
	var became *Result
	for i, result := range results {
		if result.Verdict == Passed && failed[[2]string{result.Check, result.Subject}] {
			became = &results[i]
		}
	}
	return became
}

// span measures for how long something has been true without a break.
type span struct {
	length time.Duration
	since  time.Time // zero while it is not true
	timer  *time.Timer
}

func newSpan(length time.Duration) *span {
	s := &span{length: length, timer: time.NewTimer(length)}
	s.timer.Stop()
	return s
}

func (s *span) set(holds bool) {
	switch {
	case !holds:
		s.since = time.Time{}
		s.timer.Stop()
	case s.since.IsZero():
		s.since = time.Now()
		s.timer.Reset(s.length)
	}
}

// start is when it became true, or would if it did now.
func (s *span) start() time.Time {
	if s.since.IsZero() {
		return time.Now()
	}
	return s.since
}

func (s *span) running() bool { return !s.since.IsZero() }

func (s *span) over() bool { return s.running() && s.age() >= s.length }

func (s *span) age() time.Duration { return time.Since(s.since) }

func (s *span) end() { s.timer.Stop() }
