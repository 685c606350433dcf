package health

import (
	"fmt"
	"time"
)

// A condition that was lost has come back before, so it is believed only once it has held for a little longer than it held then, but for
// LostWindow at most. One that is lost twice within FlapMemory flaps, and must hold for FlapWindow.
const (
	LostWindow = 5 * time.Second
	FlapWindow = 10 * time.Second
	FlapMemory = time.Minute
)

// flaps counts how often conditions were lost that had held before.
type flaps struct {
	seen map[[2]string]condition
}

type condition struct {
	held   bool          // at the last evaluation
	since  time.Time     // since when it holds
	before time.Duration // for how long it held before it was lost
	lost   int           // Result.Lost at the last evaluation
	breaks []time.Time   // when it was lost, oldest first
}

// forget drops what was too long ago.
func (c *condition) forget(now time.Time) {
	for len(c.breaks) > 0 && now.Sub(c.breaks[0]) > FlapMemory {
		c.breaks = c.breaks[1:]
	}
}

// note compares results with those before, says in them how often each condition was lost, and reports whether any was lost since.
func (f *flaps) note(now time.Time, results []Result) (broken bool) {
	if f.seen == nil {
		f.seen = map[[2]string]condition{}
	}
	for i := range results {
		result := &results[i]
		key := [2]string{result.Check, result.Subject}
		c, known := f.seen[key]
		c.forget(now)
		lost := result.Lost - c.lost
		switch {
		case result.Verdict == Skipped:
			lost = 0 // nobody has looked
		case !known || lost < 0:
			lost = 0
		case c.held && result.Verdict == Failed:
			lost = max(1, lost)
		}
		if lost > 0 {
			broken = true
			c.before, c.since = now.Sub(c.since), now
		}
		for range min(lost, 100) {
			c.breaks = append(c.breaks, now)
		}
		if result.Verdict != Skipped {
			if !c.held {
				c.since = now
			}
			c.held, c.lost = result.Verdict == Passed, result.Lost
		}
		f.seen[key] = c
		if len(c.breaks) > 1 {
			since := max(time.Second, now.Sub(c.breaks[0]).Round(time.Second))
			result.Flapped = fmt.Sprintf("flapped %d times in %s", len(c.breaks), since)
		}
	}
	return broken
}

// window is for how long everything must hold from now on.
func (f *flaps) window(now time.Time, stableFor time.Duration) time.Duration {
	for _, c := range f.seen {
		c.forget(now)
		switch {
		case len(c.breaks) > 1:
			stableFor = max(stableFor, FlapWindow)
		case len(c.breaks) == 1:
			stableFor = max(stableFor, min(c.before*5/4, LostWindow))
		}
	}
	return stableFor
}

// distrust turns what holds at the moment, and flaps, into failed: a gate that stays closed because of it has to name it.
func distrust(results []Result) []Result {
	for i := range results {
		if results[i].Verdict == Passed && results[i].Flapped != "" {
			results[i].Verdict, results[i].Reason = Failed, results[i].Flapped+", and holds at the moment"
		}
	}
	return results
}
