// Package healthtest compares the reports of gates with golden files.
package healthtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/golden"
)

// Reports are the reports of one gate about a cluster: the whole report of the state in which all conditions hold, and of other states the
// lines that differ.
type Reports struct {
	Verdicts map[string]map[health.Verdict]bool // of each check, in all states together

	kind, base string
	texts      map[string]string
}

// Begin returns the reports with the state in which all conditions hold.
func Begin(t *testing.T, kind, state string, results []health.Result) *Reports {
	t.Helper()
	r := &Reports{Verdicts: map[string]map[health.Verdict]bool{}, kind: kind, base: Report(t, kind, results), texts: map[string]string{}}
	r.Add(t, state, true, results)
	r.texts[state] = r.base
	return r
}

// All compares the reports of a gate with the golden file: of the state in which all conditions hold, and of what changes in it: states, in
// which they still hold, and faults. Each check has to pass, to fail and to be skipped in one of them.
func All[Spec, Seen any](
	t *testing.T, kind, state string, fresh func() (Spec, Seen), evaluate func(Spec, Seen) []health.Result,
	states, faults map[string]func(Spec, Seen),
) {
	t.Helper()
	reports := Begin(t, kind, state, evaluate(fresh()))
	for holds, changes := range map[bool]map[string]func(Spec, Seen){true: states, false: faults} {
		for name, change := range changes {
			spec, seen := fresh()
			change(spec, seen)
			reports.Add(t, name, holds, evaluate(spec, seen))
		}
	}
	for check, verdicts := range reports.Verdicts {
		assert.Len(t, verdicts, 3, "%s passes, fails and is skipped", check)
	}
	reports.Compare(t)
}

// placeholder matches the words that stand for a subject in the command of a check.
var placeholder = regexp.MustCompile(`\b(ADDRESS|CLASS|NAMESPACE|NODE|PEER|POD)\b`)

// Add adds a state in which all conditions hold, or not. Each failure must have a command that names its subject.
func (r *Reports) Add(t *testing.T, state string, holds bool, results []health.Result) {
	t.Helper()
	assert.Equal(t, holds, health.Hold(results), "%s: %+v", state, results)
	require.NotContains(t, r.texts, state)
	r.texts[state] = Differing(r.base, Report(t, r.kind, results))
	if !holds {
		assert.NotEmpty(t, r.texts[state], state)
	}
	for _, result := range results {
		assert.NotRegexp(t, placeholder, result.Command, state)
		if result.Unseen {
			continue
		}
		if result.Verdict == health.Failed {
			assert.NotEmpty(t, result.Command, "%s: %s", state, result.Check)
		}
		if r.Verdicts[result.Check] == nil {
			r.Verdicts[result.Check] = map[health.Verdict]bool{}
		}
		r.Verdicts[result.Check][result.Verdict] = true
	}
}

// Compare compares the reports with the golden file, and returns how many there are.
func (r *Reports) Compare(t *testing.T) (states int) {
	t.Helper()
	golden.Cases(t, "testdata/reports.txt", r.texts)
	return len(r.texts)
}

// Report is the text of a report with these results, as if a wait had ended closed.
func Report(t *testing.T, kind string, results []health.Result) string {
	t.Helper()
	target := health.Target{Cluster: "infra"}
	target.SetDefaults()
	var text strings.Builder
	end := health.End{Outcome: health.Closed, Results: results, Waited: time.Minute}
	require.NoError(t, health.NewReport(kind, target, end, 42).WriteTable(&text))
	return text.String()
}

// Differing returns the lines of a text that the base does not have, after the lines of the base that are gone, each with "- " before
// it. The line of a check is not gone if only its verdict, or the text in parentheses after its name, differs.
func Differing(base, text string) string {
	before, after := slices.Collect(strings.Lines(base)), slices.Collect(strings.Lines(text))
	var differing strings.Builder
	for _, line := range before {
		if !slices.ContainsFunc(after, func(other string) bool { return other == line || aboutSame(line, other) }) {
			differing.WriteString("- " + line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			differing.WriteString(line)
		}
	}
	return differing.String()
}

// checkLine matches the line of a check in a report: verdict, name, and how many hold.
var checkLine = regexp.MustCompile(`^  [a-z]+ +([^(\n]+)`)

// aboutSame reports whether two lines are those of the same check.
func aboutSame(a, b string) bool {
	first, second := checkLine.FindStringSubmatch(a), checkLine.FindStringSubmatch(b)
	return first != nil && second != nil && strings.TrimSpace(first[1]) == strings.TrimSpace(second[1])
}
