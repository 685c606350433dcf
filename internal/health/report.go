package health

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Report is the result of a probe. It holds no secret.
type Report struct {
	Kind      string         `json:"kind"` // the subcommand: gate, workloads, external-secrets, handover, argocd, storage, mesh or checks
	Cluster   string         `json:"cluster"`
	Outcome   Outcome        `json:"outcome"`
	Revision  string         `json:"revision,omitempty"` // that Flux or Argo CD applied; handover and argocd only
	UID       string         `json:"uid,omitempty"`      // of the namespace kube-system, which identifies the cluster; of an open gate only
	Began     time.Time      `json:"began,omitzero"`     // when the wait began, UTC
	Waited    probe.Duration `json:"waited"`
	Since     probe.Duration `json:"sinceLastCondition,omitempty"` // from when the last condition began to hold until the end; only if open
	Stable    probe.Duration `json:"stabilityWindow"`              // how long all conditions had to hold without a break
	Last      string         `json:"lastCondition,omitempty"`      // the condition that began to hold last
	APICalls  int64          `json:"apiCalls"`                     // requests to Kubernetes and Talos
	Summaries []string       `json:"summaries"`                    // one line a check
	Held      []Held         `json:"held,omitempty"`               // when the passed checks began to hold, in their order
	Flaps     []string       `json:"flaps,omitempty"`              // conditions that were lost more than once, and how often
	Problems  []Result       `json:"problems,omitempty"`           // what failed, and remarks; what only waits for another is not listed
	Results   []Result       `json:"results,omitempty"`            // all results, if they were asked for
}

// Held is when a check began to hold for all its subjects.
type Held struct {
	Check string         `json:"check"`
	After probe.Duration `json:"after"`          // from the beginning of the wait; 0 if it held at the first evaluation
	Last  string         `json:"last,omitempty"` // the subject for which it held last; "" if it has only one subject, or held for all at once
}

// NewReport makes the report of a wait that has ended.
func NewReport(kind string, target Target, end End, apiCalls int64) Report {
	report := Report{
		Kind: kind, Cluster: target.Cluster, Outcome: end.Outcome, APICalls: apiCalls, Stable: target.StableFor,
		Waited: probe.Duration(end.Waited.Round(time.Millisecond)), Since: probe.Duration(end.Since.Round(time.Millisecond)),
	}
	if !end.Began.IsZero() {
		report.Began = end.Began.UTC().Truncate(time.Millisecond)
	}
	if end.Last != nil {
		report.Last = end.Last.sentence()
	}
	for _, group := range groups(slices.Concat(target.skipped(), end.Results)) {
		report.Summaries = append(report.Summaries, group.summary())
		if group.verdict() == Passed {
			report.Held = append(report.Held, group.held())
		}
		for _, result := range group.results {
			if result.Flapped != "" {
				report.Flaps = append(report.Flaps, result.sentence()+": "+result.Flapped)
			}
			if result.Verdict == Failed || result.remarked() {
				report.Problems = append(report.Problems, result)
			}
		}
	}
	return report
}

// Sentence returns the outcome in one sentence: "open after 5.4 s: 18 checks passed".
func (r Report) Sentence() string {
	checks := map[Verdict]int{}
	for _, summary := range r.Summaries {
		verdict, _, _ := strings.Cut(summary, " ")
		checks[Verdict(verdict)]++
	}
	var counts []string
	add := func(n int, text string) {
		if n > 0 {
			counts = append(counts, fmt.Sprintf(text, n))
		}
	}
	add(checks[Failed], "%d of "+fmt.Sprint(len(r.Summaries))+" checks failed")
	add(checks[Passed], "%d "+plural("check", checks[Passed])+" passed")
	add(checks[Skipped], "%d skipped")
	add(len(r.Flaps), "%d "+plural("condition", len(r.Flaps))+" flapped")
	if r.Revision != "" {
		counts = append(counts, "revision "+r.Revision)
	}
	return fmt.Sprintf("%s after %s: %s", r.Outcome, probe.Took(time.Duration(r.Waited)), strings.Join(counts, ", "))
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Write writes the report as text, and then as JSON on one line if the wait ended open: without success, nobody stores it.
func (r Report) Write(w io.Writer) error {
	if err := r.WriteTable(w); err != nil || r.Outcome != Open {
		return err
	}
	return json.NewEncoder(w).Encode(r)
}

// WriteTable writes the report as text: a line a check, then the problems with evidence and the commands that show more.
func (r Report) WriteTable(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s of %s: %s after %s", r.Kind, r.Cluster, r.Outcome, r.Waited)
	if r.Outcome == Open {
		fmt.Fprintf(&text, ", %s after the last condition became true", r.Since)
		if r.Last != "" {
			fmt.Fprintf(&text, " (%s)", r.Last)
		}
	}
	fmt.Fprintf(&text, ", %d API calls; all must hold for %s without a break\n", r.APICalls, r.Stable)
	if r.Revision != "" {
		fmt.Fprintf(&text, "revision %s\n", r.Revision)
	}
	for _, summary := range r.Summaries {
		fmt.Fprintf(&text, "  %s\n", summary)
	}
	for _, flap := range r.Flaps {
		fmt.Fprintf(&text, "flaps: %s\n", flap)
	}
	for _, same := range alike(r.Problems) {
		text.WriteString(problemText(same))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteJSON writes the whole report as indented JSON.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// ReportFrom reads the report from a probe's standard output.
func ReportFrom(stdout string) (Report, error) {
	line := probe.ReportLine(stdout)
	if line == "" {
		return Report{}, errors.New("probe's output: is empty; its last line must be the report")
	}
	var report Report
	if err := json.Unmarshal([]byte(line), &report); err != nil {
		return Report{}, fmt.Errorf("probe's output: the last line is not a report: %w", err)
	}
	return report, nil
}

// How much a table shows of the subjects with the same problem, and of the evidence. -o json shows all of it.
const (
	tableSubjects = 5
	tableEvidence = 8
)

// problemText is the text of one problem that several subjects may have.
func problemText(same []Result) string {
	first := same[0]
	var text strings.Builder
	text.WriteString(string(first.Verdict) + ": " + subjects(same) + first.Reason + "\n")
	fmt.Fprintf(&text, "    should: %s\n", first.Check)
	for _, evidence := range first.Evidence[:min(len(first.Evidence), tableEvidence)] {
		fmt.Fprintf(&text, "    %s\n", evidence)
	}
	if more := len(first.Evidence) - tableEvidence; more > 0 {
		fmt.Fprintf(&text, "    (%d more lines with -o json)\n", more)
	}
	for command := range strings.SplitSeq(first.Command, "; ") {
		if command != "" {
			fmt.Fprintf(&text, "    more:   %s\n", command)
		}
	}
	return text.String()
}

// subjects lists the subjects of results with the same text, followed by a colon; "" if they have none.
func subjects(same []Result) string {
	if same[0].Subject == "" {
		return ""
	}
	names := xslices.Map(same[:min(len(same), tableSubjects)], func(r Result) string { return r.Subject })
	text := strings.Join(names, ", ")
	if more := len(same) - tableSubjects; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ": "
}

// alike groups results that differ in their subject only.
func alike(results []Result) [][]Result {
	var all [][]Result
	at := map[[3]string]int{}
	for _, result := range results {
		text := [3]string{result.Check, string(result.Verdict), result.Reason}
		i, known := at[text]
		if !known {
			i = len(all)
			at[text] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], result)
	}
	return all
}

// group holds the results of one check.
type group struct {
	check   string
	results []Result
}

func groups(results []Result) []group {
	var all []group
	for _, result := range results {
		if n := len(all); n == 0 || all[n-1].check != result.Check {
			all = append(all, group{check: result.Check})
		}
		last := &all[len(all)-1]
		last.results = append(last.results, result)
	}
	return all
}

// worst returns the first of the results with the worst verdict.
func (g group) worst() Result {
	return slices.MaxFunc(g.results, func(a, b Result) int { return cmp.Compare(a.rank(), b.rank()) })
}

// verdict is the worst verdict of the group.
func (g group) verdict() Verdict { return g.worst().Verdict }

// counts returns how many subjects pass, and how many are judged.
func (g group) counts() (passed, judged int) {
	for _, result := range g.results {
		if !result.remarked() {
			judged++
		}
		if result.Verdict == Passed {
			passed++
		}
	}
	return passed, judged
}

// held is when the group's check, which passed, began to hold for all its subjects.
func (g group) held() Held {
	passed := slices.DeleteFunc(slices.Clone(g.results), func(r Result) bool { return r.Verdict != Passed })
	byTime := func(a, b Result) int { return cmp.Compare(a.Held, b.Held) }
	first, last := slices.MinFunc(passed, byTime), slices.MaxFunc(passed, byTime)
	held := Held{Check: g.check, After: last.Held}
	if first.Held < last.Held {
		held.Last = last.Subject
	}
	return held
}

// summary is the check in one line: verdict, name, how many subjects pass, and remarks.
func (g group) summary() string {
	notes := map[string]int{}
	for _, result := range g.results {
		if result.Reason != "" && result.Verdict != Failed && !result.remarked() {
			notes[result.Reason]++
		}
	}
	line := fmt.Sprintf("%-7s  %s", g.verdict(), g.check)
	if passed, judged := g.counts(); judged > 1 {
		line += fmt.Sprintf(" (%d of %d)", passed, judged)
	}
	if len(notes) > 0 {
		texts := slices.Sorted(maps.Keys(notes))
		line += " (" + texts[0]
		if len(texts) > 1 {
			line += fmt.Sprintf("; and %d more", len(texts)-1)
		}
		line += ")"
	}
	return line
}
