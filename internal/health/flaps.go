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
	looked bool          // somebody has
	held   bool          // at the last look
	since  time.Time     // since when it holds
	before time.Duration // for how long it held before it was lost
	lost   int           // Result.Lost at the last look
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
		c := f.seen[key]
		c.forget(now)
		// Where nobody has looked, nothing was lost.
		if result.Verdict != Skipped && !result.Unseen {
			broken = c.look(now, *result) || broken
		}
		f.seen[key] = c
		if len(c.breaks) > 1 {
			since := max(time.Second, now.Sub(c.breaks[0]).Round(time.Second))
			result.Flapped = fmt.Sprintf("flapped %d times in %s", len(c.breaks), since)
		}
	}
	return broken
}

// look takes a result in, and reports whether the condition was lost since the one before.
func (c *condition) look(now time.Time, result Result) bool {
	lost := max(0, result.Lost-c.lost)
	switch {
	case !c.looked:
		c.since = now.Add(-FlapMemory) // what held before anybody looked did so for who knows how long
	case !c.held:
		lost = 0 // it was lost before, and still is
	case result.Verdict == Failed:
		lost = max(1, lost)
	}
	if lost > 0 {
		c.before, c.since = now.Sub(c.since), now
	}
	for range min(lost, 100) {
		c.breaks = append(c.breaks, now)
	}
	if c.looked && !c.held {
		c.since = now
	}
	c.looked, c.held, c.lost = true, result.Verdict == Passed, result.Lost
	return lost > 0
}

// believed is when everything that was lost will have held for long enough, if nothing is lost again.
func (f *flaps) believed(now time.Time) time.Time {
	var latest time.Time
	for _, c := range f.seen {
		c.forget(now)
		var window time.Duration
		switch {
		case len(c.breaks) > 1:
			window = FlapWindow
		case len(c.breaks) == 1:
			window = min(c.before*5/4, LostWindow)
		default:
			continue
		}
		if at := c.since.Add(window); at.After(latest) {
			latest = at
		}
	}
	return latest
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
