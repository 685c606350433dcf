package health

import (
	"fmt"
	"time"
)

// What is lost twice within FlapMemory flaps. It has come back before, so it is believed only once it has held for FlapWindow.
const (
	FlapMemory = time.Minute
	FlapWindow = 10 * time.Second
)

// flaps counts how often conditions were lost that had held before.
type flaps struct {
	seen map[[2]string]condition
}

type condition struct {
	held   bool // at the last evaluation
	lost   int  // Result.Lost at the last evaluation
	breaks []time.Time
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
		for len(c.breaks) > 0 && now.Sub(c.breaks[0]) > FlapMemory {
			c.breaks = c.breaks[1:]
		}
		lost := result.Lost - c.lost
		switch {
		case result.Verdict == Skipped:
			lost = 0 // nobody has looked
		case !known || lost < 0:
			lost = 0
		case c.held && result.Verdict == Failed:
			lost = max(1, lost)
		}
		for range min(lost, 100) {
			c.breaks = append(c.breaks, now)
		}
		broken = broken || lost > 0
		if result.Verdict != Skipped {
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
func (f *flaps) window(stableFor time.Duration, results []Result) time.Duration {
	for _, result := range results {
		if result.Flapped != "" {
			return max(stableFor, FlapWindow)
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
