package health

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/probe"
)

// world is the one condition of a wait. The test decides whether it holds.
type world struct {
	good     atomic.Bool
	hopeless atomic.Bool
	changed  chan struct{}
}

func newWorld() *world { return &world{changed: make(chan struct{}, 1)} }

func (w *world) become(good bool) {
	w.good.Store(good)
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *world) evaluate() []Result {
	if w.good.Load() {
		return []Result{{Check: "the world is good", Verdict: Passed}}
	}
	return []Result{{Check: "the world is good", Verdict: Failed, Reason: "it is not", Hopeless: w.hopeless.Load()}}
}

func TestWait_OpensWithinASecondOfTheLastCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		time.AfterFunc(90*time.Second, func() { w.become(true) })
		start := time.Now()
		end := Wait{Evaluate: w.evaluate, Changed: w.changed}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, 90*time.Second+DefaultStableFor, time.Since(start))
		assert.Equal(t, DefaultStableFor, end.Since)
		assert.Less(t, end.Since, time.Second)
		assert.Equal(t, "the world is good", end.Last.Check)
	})
}

// at changes the condition at times from now.
func (w *world) at(times map[time.Duration]bool) {
	for at, good := range times {
		time.AfterFunc(at, func() { w.become(good) })
	}
}

func TestWait_AConditionThatIsLostStartsTheWindowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.at(map[time.Duration]bool{10 * time.Second: true, 12 * time.Second: false, 13 * time.Second: true})
		start := time.Now()
		end := Wait{Evaluate: w.evaluate, Changed: w.changed, StableFor: 3 * time.Second}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, 16*time.Second, time.Since(start))
	})
}

func TestWait_AConditionThatWasLostMustHoldLongerThanItDid(t *testing.T) {
	for held, window := range map[time.Duration]time.Duration{
		100 * time.Millisecond: DefaultStableFor, 2 * time.Second: 2500 * time.Millisecond, time.Hour: lostWindow,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.at(map[time.Duration]bool{time.Second: true, time.Second + held: false, 2*time.Second + held: true})
			start := time.Now()
			// Something else is missing for longer than the condition holds at first.
			end := Wait{Changed: w.changed, Timeout: 2 * time.Hour, Evaluate: func() []Result {
				other := Result{Check: "other", Verdict: Passed}
				if time.Since(start) < time.Second+held {
					other.Verdict = Failed
				}
				return append(w.evaluate(), other)
			}}.Run(t.Context())
			assert.Equal(t, Open, end.Outcome)
			assert.Equal(t, 2*time.Second+held+window, time.Since(start), "it held for %s", held)
		})
	}
}

func TestWait_AConditionThatWasLostAndHasHeldLongEnoughSinceDelaysNothing(t *testing.T) {
	for broken, opens := range map[time.Duration]time.Duration{
		2 * time.Second: 30*time.Second + DefaultStableFor, 28 * time.Second: 29*time.Second + lostWindow,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.at(map[time.Duration]bool{0: true, broken: false, broken + time.Second: true})
			start := time.Now()
			end := Wait{Changed: w.changed, Evaluate: func() []Result {
				other := Result{Check: "other", Verdict: Failed}
				if time.Since(start) >= 30*time.Second {
					other.Verdict = Passed
				}
				return append(w.evaluate(), other)
			}, Heartbeat: time.Second}.Run(t.Context())
			assert.Equal(t, Open, end.Outcome)
			assert.Equal(t, opens, time.Since(start), "lost after %s", broken)
		})
	}
}

func TestWait_AConditionThatFlapsMustHoldForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.at(map[time.Duration]bool{0: true, 100 * time.Millisecond: false, 2 * time.Second: true, 2100 * time.Millisecond: false,
			4 * time.Second: true})
		start := time.Now()
		var said strings.Builder
		end := Wait{Evaluate: w.evaluate, Changed: w.changed, Reporter: NewProgress(&said)}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, 4*time.Second+flapWindow, time.Since(start))
		assert.Equal(t, "flapped 2 times in 14s", end.Results[0].Flapped)
		assert.Contains(t, said.String(), "flaps  the world is good: flapped 2 times in 2s")
	})
}

func TestWait_AConditionThatKeepsFlappingFailsAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for at := time.Duration(0); at < 5*time.Minute; at += 5 * time.Second {
			w.at(map[time.Duration]bool{at: true, at + 300*time.Millisecond: false})
		}
		end := Wait{Evaluate: w.evaluate, Changed: w.changed, Timeout: 2 * time.Minute}.Run(t.Context())
		assert.Equal(t, Closed, end.Outcome)
		assert.Equal(t, Failed, end.Results[0].Verdict)
		assert.Regexp(t, "^flapped 1[123] times in ", end.Results[0].Flapped)
	})
}

func TestWait_ALossBetweenTwoEvaluationsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{}, 1)
		var lost atomic.Int64
		for _, at := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond} {
			time.AfterFunc(at, func() { lost.Add(1); changed <- struct{}{} })
		}
		start := time.Now()
		end := Wait{Changed: changed, Evaluate: func() []Result {
			return []Result{{Check: "it is Ready", Subject: "n", Verdict: Passed, Lost: int(lost.Load())}}
		}}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, 600*time.Millisecond+flapWindow, time.Since(start))
	})
}

func TestWait_AConditionThatHeldFromTheStartAndWasLostMustHoldForLostWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.become(true)
		w.at(map[time.Duration]bool{100 * time.Millisecond: false, 2 * time.Second: true})
		start := time.Now()
		assert.Equal(t, Open, Wait{Evaluate: w.evaluate, Changed: w.changed}.Run(t.Context()).Outcome)
		assert.Equal(t, 2*time.Second+lostWindow, time.Since(start))
	})
}

func TestWait_AConditionThatWasLostBeforeTheFirstLookMustHoldForLostWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.at(map[time.Duration]bool{200 * time.Millisecond: false, time.Second: true})
		start := time.Now()
		end := Wait{Changed: w.changed, Evaluate: func() []Result {
			results := w.evaluate()
			results[0].Unseen = time.Since(start) < 100*time.Millisecond
			if !results[0].Unseen {
				results[0].Lost = 1
			}
			return results
		}}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, time.Second+lostWindow, time.Since(start))
	})
}

func TestWait_ABlockedResultThatComesAndGoesDoesNotFlap(t *testing.T) {
	f := histories{}
	now := time.Now()
	for i := range 10 {
		verdict := []Verdict{Passed, Skipped}[i%2]
		results := []Result{{Check: "c", Subject: "n", Verdict: verdict, Blocked: verdict == Skipped}}
		assert.False(t, f.note(now.Add(time.Duration(i)*time.Second), results))
		assert.Empty(t, results[0].Flapped)
	}
}

func TestWait_DoesNotOpenBeforeTheConfirmationReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.at(map[time.Duration]bool{time.Second: true})
		asked := 0
		start := time.Now()
		end := Wait{Evaluate: w.evaluate, Changed: w.changed, Confirm: func(ctx context.Context) {
			asked++
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
		}}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, 6*time.Second, time.Since(start))
		assert.Equal(t, 1, asked)
	})
}

func TestWait_AFailureDuringTheConfirmationStartsItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.become(true)
		asked := 0
		end := Wait{Evaluate: w.evaluate, Changed: w.changed, Confirm: func(ctx context.Context) {
			if asked++; asked == 1 {
				w.become(false)
				<-ctx.Done() // the failure ends it
				time.AfterFunc(time.Second, func() { w.become(true) })
			}
		}}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, 2, asked)
	})
}

func TestWait_OnceEndsWhenEverythingHasBeenRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{}, 1)
		var looked atomic.Bool
		time.AfterFunc(3*time.Second, func() { looked.Store(true); changed <- struct{}{} })
		start := time.Now()
		end := Wait{Once: true, Changed: changed, Evaluate: func() []Result {
			return []Result{{Check: "c", Verdict: Failed, Unseen: !looked.Load()}}
		}}.Run(t.Context())
		assert.Equal(t, Closed, end.Outcome)
		assert.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestWait_EndsClosedAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		end := Wait{Evaluate: newWorld().evaluate, Timeout: 2 * time.Minute}.Run(t.Context())
		assert.Equal(t, Closed, end.Outcome)
		assert.Equal(t, 2*time.Minute, time.Since(start))
		assert.Equal(t, "it is not", end.Results[0].Reason)
	})
}

func TestWait_TheTimeoutDoesNotEndARunningWindow(t *testing.T) {
	for failsAgain, outcome := range map[bool]Outcome{false: Open, true: Closed} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			time.AfterFunc(59*time.Second, func() { w.become(true) })
			if failsAgain {
				time.AfterFunc(61*time.Second, func() { w.become(false) })
			}
			start := time.Now()
			end := Wait{Evaluate: w.evaluate, Changed: w.changed, Timeout: time.Minute, StableFor: 3 * time.Second}.Run(t.Context())
			assert.Equal(t, outcome, end.Outcome)
			assert.LessOrEqual(t, time.Since(start), 62*time.Second)
		})
	}
}

func TestWait_EndsEarlyOnlyIfAResultStaysHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hopeless.Store(true)
		start := time.Now()
		end := Wait{Evaluate: w.evaluate, Changed: w.changed}.Run(t.Context())
		assert.Equal(t, Hopeless, end.Outcome)
		assert.Equal(t, grace, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hopeless.Store(true)
		time.AfterFunc(grace-time.Second, func() { w.hopeless.Store(false); w.become(false) })
		time.AfterFunc(2*grace, func() { w.become(true) })
		assert.Equal(t, Open, Wait{Evaluate: w.evaluate, Changed: w.changed}.Run(t.Context()).Outcome)
	})
}

func TestWait_ThatIsInterruptedReturnsTheLastResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		end := Wait{Evaluate: newWorld().evaluate}.Run(ctx)
		assert.Equal(t, Interrupted, end.Outcome)
		assert.Len(t, end.Results, 1)
	})
}

func TestWait_TellsWhenEachConditionBeganToHoldForTheLastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, changed := time.Now(), make(chan struct{}, 1)
		// Each subject holds from its first time on, apart from the span between its second and third.
		times := map[string][]time.Duration{
			"a": {0}, "b": {3 * time.Second}, "c": {2 * time.Second, 4 * time.Second, 5 * time.Second},
		}
		for _, changes := range times {
			for _, at := range changes[min(1, len(changes)):] {
				time.AfterFunc(at, func() { changed <- struct{}{} })
			}
		}
		time.AfterFunc(2*time.Second, func() { changed <- struct{}{} })
		time.AfterFunc(3*time.Second, func() { changed <- struct{}{} })
		evaluate := func() (results []Result) {
			waited := time.Since(start)
			for _, subject := range []string{"a", "b", "c"} {
				changes := times[subject]
				result := Result{Check: "it holds", Subject: subject, Verdict: Passed}
				if waited < changes[0] || len(changes) > 1 && waited >= changes[1] && waited < changes[2] {
					result.Verdict = Failed
				}
				results = append(results, result)
			}
			return append(results, Result{Check: "it does not apply", Verdict: Skipped})
		}
		end := Wait{Evaluate: evaluate, Changed: changed, StableFor: time.Second}.Run(t.Context())
		assert.Equal(t, Open, end.Outcome)
		assert.Equal(t, start, end.Began)
		var held []time.Duration
		for _, result := range end.Results {
			held = append(held, time.Duration(result.Held))
		}
		assert.Equal(t, []time.Duration{0, 3 * time.Second, 5 * time.Second, 0}, held)
		assert.Equal(t, []Held{{Check: "it holds", After: probe.Duration(5 * time.Second), Last: "c"}},
			NewReport("gate", Target{}, end, 1).Held)
	})
}

func TestWait_ThatDoesNotOpenTellsOnlyWhatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.at(map[time.Duration]bool{time.Second: true, 1100 * time.Millisecond: false})
		end := Wait{Evaluate: w.evaluate, Changed: w.changed, Timeout: 3 * time.Second}.Run(t.Context())
		assert.Equal(t, Closed, end.Outcome)
		assert.Zero(t, end.Results[0].Held)
		assert.Empty(t, NewReport("gate", Target{}, end, 1).Held)
	})
}
