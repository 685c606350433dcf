package health

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// running is the state of a Wait that runs.
type running struct {
	Wait

	start         time.Time
	results       []Result     // of the newest evaluation
	last          *Result      // the condition that began to hold last; nil if there is none yet
	conditions    histories    // of all evaluations
	confirm       confirmation // runs while all conditions hold
	holdsSince    time.Time    // since when all conditions hold without a break; zero if they do not
	hopelessSince time.Time    // since when there is a hopeless result; zero if there is none
	late          bool         // the timeout has passed
}

func (w Wait) begin() *running {
	return &running{Wait: w, start: time.Now(), conditions: histories{}, confirm: confirmation{ask: w.Confirm}}
}

// evaluate evaluates the checks, and returns when it has. It starts the confirmation when all conditions begin to hold, and stops it when
// one is lost.
func (r *running) evaluate(ctx context.Context) time.Time {
	results := r.Evaluate()
	now := time.Now()
	lost := r.conditions.note(now, results)
	if r.Reporter != nil {
		r.Reporter.Seen(time.Since(r.start), results)
	}
	if began := beganToHold(r.results, results); began != nil {
		r.last = began
	}
	r.results = results
	if lost {
		r.holdsSince = time.Time{}
		r.confirm.stop()
	}
	holds := Hold(results)
	r.holdsSince = since(r.holdsSince, now, holds)
	r.hopelessSince = since(r.hopelessSince, now, slices.ContainsFunc(results, func(result Result) bool {
		return result.Verdict == Failed && result.Hopeless
	}))
	r.confirm.set(ctx, holds)
	return now
}

// next decides from the newest evaluation, at now, what the wait does next. It returns the outcome if the wait ends, and otherwise ""
// and when to evaluate again if nothing changes before; the zero time means only after a change.
func (r *running) next(now time.Time) (outcome Outcome, again time.Time) {
	if !r.holdsSince.IsZero() {
		switch opens := r.opens(now); {
		case now.Before(opens):
			return "", opens
		case r.confirm.done():
			return Open, time.Time{}
		}
		return "", time.Time{} // the confirmation runs
	}
	unseen := slices.ContainsFunc(r.results, func(result Result) bool { return result.Unseen })
	if r.late || r.Once && !unseen {
		return Closed, time.Time{}
	}
	if r.hopelessSince.IsZero() {
		return "", time.Time{}
	}
	givesUp := r.hopelessSince.Add(grace)
	if now.Before(givesUp) {
		return "", givesUp
	}
	return Hopeless, time.Time{}
}

// opens returns when all conditions, which hold now, will have held for long enough.
func (r *running) opens(now time.Time) time.Time {
	stable, trusted := r.holdsSince.Add(cmp.Or(r.StableFor, DefaultStableFor)), r.conditions.trusted(now)
	if stable.After(trusted) {
		return stable
	}
	return trusted
}

// end returns how the wait ended.
func (r *running) end(outcome Outcome) End {
	end := End{Outcome: outcome, Results: r.results, Began: r.start, Waited: time.Since(r.start)}
	if outcome == Open {
		end.Since, end.Last = time.Since(r.holdsSince), r.last
	} else {
		failFlapping(r.results)
	}
	r.conditions.tellHeld(r.start, r.results)
	return end
}

// interrupted evaluates the checks for the last time.
func (r *running) interrupted() End {
	r.results = r.Evaluate()
	r.conditions.note(time.Now(), r.results)
	return r.end(Interrupted)
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
