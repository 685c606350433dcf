package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/golden"
)

// ended returns the end of a wait with an example of everything that a report shows.
func ended(outcome health.Outcome) (health.Target, health.End) {
	results := []health.Result{
		{Check: "it is passed", Subject: "a", Verdict: health.Passed, Reason: "a note"},
		{Check: "it is passed", Subject: "b", Verdict: health.Passed, Held: probe.Duration(3500 * time.Millisecond)},
		{Check: "it is blocked", Verdict: health.Skipped, Reason: "waits: something", Blocked: true},
		{Check: "it has a remark", Verdict: health.Passed},
		{Check: "it has a remark", Subject: "laptop", Verdict: health.Skipped, Reason: "is not declared"},
		{Check: "it flaps", Verdict: health.Failed, Reason: "flapped 2 times in 3s, and holds at the moment", Flapped: "flapped 2 times in 3s"},
	}
	for i := range 7 {
		failed := health.Result{Check: "it is failed", Subject: fmt.Sprint("n", i), Verdict: health.Failed, Reason: "of the same reason",
			Command: "one; two"}
		for j := range 10 {
			failed.Evidence = append(failed.Evidence, fmt.Sprint("line ", j))
		}
		results = append(results, failed)
	}
	target := health.Target{Cluster: "infra"}
	target.SetDefaults()
	began := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.FixedZone("CET", 3600))
	return target, health.End{
		Outcome: outcome, Results: results, Began: began, Waited: time.Minute, Since: 400 * time.Millisecond, Last: &results[0],
	}
}

func TestReport_ShowsSummariesThenProblemsWithEvidenceAndCommands(t *testing.T) {
	target, end := ended(health.Open)
	report := health.NewReport("handover", target, end, 42)
	report.Revision = "main@sha1:1"
	var text strings.Builder
	require.NoError(t, report.Write(&text))
	golden.File(t, "testdata/report.txt", text.String())
}

func TestReport_IsOneSentence(t *testing.T) {
	target, end := ended(health.Closed)
	assert.Equal(t, "closed after 1m0s: 2 of 5 checks failed, 2 checks passed, 1 skipped, 1 condition flapped",
		health.NewReport("gate", target, end, 7).Sentence())
	end = health.End{Outcome: health.Open, Waited: 5417 * time.Millisecond, Results: end.Results[:1]}
	report := health.NewReport("handover", target, end, 7)
	assert.Equal(t, "open after 5.4 s: 1 check passed", report.Sentence())
	report.Revision = "refs/heads/main@sha1:1"
	assert.Equal(t, "open after 5.4 s: 1 check passed, revision refs/heads/main@sha1:1", report.Sentence())
}

func TestReport_ThatIsNotOpenHasNoJSON(t *testing.T) {
	target, end := ended(health.Closed)
	var out strings.Builder
	require.NoError(t, health.NewReport("gate", target, end, 7).Write(&out))
	assert.Contains(t, out.String(), "n0, n1, n2, n3, n4 and 2 more: of the same reason")
	assert.NotContains(t, out.String(), "{")
}

func TestReport_EndsInOneLineThatReadsBack(t *testing.T) {
	target, end := ended(health.Open)
	written := health.NewReport("gate", target, end, 7)
	var out strings.Builder
	require.NoError(t, written.Write(&out))
	read, err := health.ReportFrom(out.String())
	require.NoError(t, err)
	assert.Equal(t, written, read)
	assert.Equal(t, "laptop", read.Problems[0].Subject)
	assert.NotContains(t, probe.ReportLine(out.String()), "\n")
	_, err = health.ReportFrom("\n")
	assert.ErrorContains(t, err, "is empty")
}
