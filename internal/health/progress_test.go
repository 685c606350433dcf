package health_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/golden"
)

func TestProgress_PrintsChangesOnceAndALineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{})
		start := time.Now()
		go func() {
			for range 40 {
				time.Sleep(time.Second)
				changed <- struct{}{}
			}
		}()
		var out strings.Builder
		health.Wait{Changed: changed, Timeout: time.Minute, Reporter: health.NewProgress(&out), Evaluate: func() []health.Result {
			if time.Since(start) < 40*time.Second {
				return []health.Result{{Check: "the world is good", Verdict: health.Failed, Reason: "it is not"}}
			}
			return []health.Result{{Check: "the world is good", Verdict: health.Passed}}
		}}.Run(t.Context())
		golden.File(t, "testdata/progress.txt", out.String())
	})
}

func TestProgress_PrintsOneLineForSubjectsWithTheSameText(t *testing.T) {
	var out strings.Builder
	var results []health.Result
	for i := range 7 {
		results = append(results,
			health.Result{Check: "every node is Ready", Subject: string(rune('a' + i)), Verdict: health.Failed, Reason: "no CNI"})
	}
	results = append(results, health.Result{Check: "ranges are as declared", Verdict: health.Skipped, Reason: "none are"})
	progress := health.NewProgress(&out)
	progress.Seen(time.Second, results)
	for i := range results {
		results[i].Verdict, results[i].Reason = health.Passed, ""
	}
	progress.Seen(2*time.Second, results)
	assert.Equal(t, `    1.0s  waits  a, b, c, d, e and 2 more: every node is Ready: no CNI
    2.0s  holds  every node is Ready (7 of 7)
    2.0s  holds  ranges are as declared
`, out.String())
}

func TestProgress_AReasonThatAlternatesIsNotPrintedEachTime(t *testing.T) {
	var out strings.Builder
	progress := health.NewProgress(&out)
	for i := range 40 {
		reason := []string{"a refuses", "b refuses"}[i%2]
		progress.Seen(time.Duration(i+1)*100*time.Millisecond,
			[]health.Result{{Check: "c", Subject: "n", Verdict: health.Failed, Reason: reason}})
	}
	assert.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
}
