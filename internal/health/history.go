package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// A condition that was lost must hold for longer before a wait ends open. After one loss it must hold 25% longer than it held before,
// at most lostWindow. A condition that was lost twice within FlapMemory flaps and must hold for flapWindow.
const (
	lostWindow = 5 * time.Second
	flapWindow = 10 * time.Second
	FlapMemory = time.Minute
)

// histories are the conditions that a wait has seen.
type histories map[key]*history

// history is what a wait has seen of one condition.
type history struct {
	known  bool          // it has been judged at least once
	passed bool          // at the last evaluation
	since  time.Time     // when it began to hold, or was lost for the last time
	began  time.Time     // when it was seen to begin to hold, for the last time; zero if it does not hold
	held   time.Duration // how long it held before the last loss
	lost   int           // Result.Lost at the last evaluation
	losses []time.Time   // within FlapMemory, oldest first
}

// note adds an evaluation, sets Flapped in its results, and reports whether any condition was lost since the evaluation before.
func (h histories) note(now time.Time, results []Result) bool {
	anyLost := false
	for i := range results {
		result := &results[i]
		c := h[result.key()]
		if c == nil {
			c = &history{}
			h[result.key()] = c
		}
		c.forget(now)
		// A condition that nobody could judge was not lost.
		if result.Verdict != Skipped && !result.Unseen && c.note(now, *result) {
			anyLost = true
		}
		if len(c.losses) > 1 {
			result.Flapped = fmt.Sprintf("flapped %d times in %s", len(c.losses), max(time.Second, now.Sub(c.losses[0]).Round(time.Second)))
		}
	}
	return anyLost
}

// trusted returns when every condition will have held for long enough after its losses, if none is lost again.
func (h histories) trusted(now time.Time) time.Time {
	var latest time.Time
	for _, c := range h {
		c.forget(now)
		var window time.Duration
		switch len(c.losses) {
		case 0:
			continue
		case 1:
			window = min(c.held*5/4, lostWindow)
		default:
			window = flapWindow
		}
		if at := c.since.Add(window); at.After(latest) {
			latest = at
		}
	}
	return latest
}

// note adds a result, and reports whether the condition was lost since the result before.
func (c *history) note(now time.Time, result Result) bool {
	losses := result.Lost - c.lost
	switch {
	case !c.known:
		c.since = now.Add(-FlapMemory) // it is unknown for how long it has held
	case !c.passed:
		losses, c.since = 0, now // the loss was noted when it happened
	case result.Verdict == Failed:
		losses = max(1, losses)
	}
	if losses > 0 {
		c.held, c.since = now.Sub(c.since), now
		c.losses = append(c.losses, slices.Repeat([]time.Time{now}, losses)...)
	}
	switch {
	case result.Verdict != Passed:
		c.began = time.Time{}
	case losses > 0 || c.began.IsZero():
		c.began = now
	}
	c.known, c.passed, c.lost = true, result.Verdict == Passed, result.Lost
	return losses > 0
}

// forget drops losses that are older than FlapMemory.
func (c *history) forget(now time.Time) {
	for len(c.losses) > 0 && now.Sub(c.losses[0]) > FlapMemory {
		c.losses = c.losses[1:]
	}
}

// tellHeld sets Held in the passed results of a wait that began at start.
func (h histories) tellHeld(start time.Time, results []Result) {
	for i := range results {
		c := h[results[i].key()]
		if c != nil && results[i].Verdict == Passed && !c.began.IsZero() {
			results[i].Held = probe.Duration(c.began.Sub(start).Round(time.Millisecond))
		}
	}
}

// failFlapping marks passing but flapping results as failed, so that the report names them.
func failFlapping(results []Result) {
	for i := range results {
		if results[i].Verdict == Passed && results[i].Flapped != "" {
			results[i].Verdict, results[i].Reason = Failed, results[i].Flapped+", and holds at the moment"
		}
	}
}
