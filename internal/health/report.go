package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Report is what a probe ends with. It holds no secret.
type Report struct {
	Kind      string         `json:"kind"` // gate or handover
	Cluster   string         `json:"cluster"`
	Outcome   Outcome        `json:"outcome"`
	Revision  string         `json:"revision,omitempty"` // that Flux applied; handover only
	Waited    probe.Duration `json:"waited"`
	Since     probe.Duration `json:"sinceLastCondition,omitempty"` // from the last condition becoming true to open, the stability window included
	Stable    probe.Duration `json:"stabilityWindow"`
	Last      string         `json:"lastCondition,omitempty"` // the condition that became true last
	APICalls  int64          `json:"apiCalls"`                // requests to Kubernetes and Talos
	Summaries []string       `json:"summaries"`               // one line a check
	Flaps     []string       `json:"flaps,omitempty"`         // what was lost more than once, and how often
	Problems  []Result       `json:"problems,omitempty"`      // what failed, and what nothing looks at; consequences are only counted in the summaries
	Results   []Result       `json:"results,omitempty"`       // all of them, where they are asked for
}

// NewReport makes the report of a wait that has ended.
func NewReport(kind, cluster string, stableFor probe.Duration, end End, apiCalls int64) Report {
	report := Report{
		Kind: kind, Cluster: cluster, Outcome: end.Outcome, APICalls: apiCalls, Stable: stableFor,
		Waited: probe.Duration(end.Waited.Round(time.Millisecond)), Since: probe.Duration(end.Since.Round(time.Millisecond)),
	}
	if end.Last != nil {
		report.Last = end.Last.sentence()
	}
	for _, group := range groups(end.Results) {
		report.Summaries = append(report.Summaries, group.summary())
		for _, result := range group.results {
			if result.Flapped != "" {
				report.Flaps = append(report.Flaps, result.sentence()+": "+result.Flapped)
			}
			if result.Verdict == Failed || result.reported() {
				report.Problems = append(report.Problems, result)
			}
		}
	}
	return report
}

// Write writes the report for a person, and then on one line as JSON.
func (r Report) Write(w io.Writer) error {
	if err := r.WriteTable(w); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(r)
}

// WriteTable writes the report for a person: a line a check, then what failed, with evidence and the command that shows more.
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

// WriteJSON writes the whole report, indented.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// ReportFrom reads the report out of a probe's output.
func ReportFrom(stdout string) (Report, error) {
	line := probe.ReportLine(stdout)
	if line == "" {
		return Report{}, errors.New("probe's output: is empty; its last line is the report")
	}
	var report Report
	if err := json.Unmarshal([]byte(line), &report); err != nil {
		return Report{}, fmt.Errorf("probe's output: the last line is no report: %w", err)
	}
	return report, nil
}

// sentence is a result in one line, without verdict.
func (r Result) sentence() string {
	if r.Subject == "" {
		return r.Check
	}
	return r.Subject + ": " + r.Check
}

// reported: nothing is wrong with it, and a person should know all the same, such as a node that nobody has declared.
func (r Result) reported() bool { return r.Verdict == Skipped && !r.Blocked && r.Subject != "" }

// alike puts results together that say the same of different subjects.
func alike(results []Result) [][]Result {
	var all [][]Result
	at := map[[3]string]int{}
	for _, result := range results {
		key := [3]string{result.Check, string(result.Verdict), result.Reason}
		i, known := at[key]
		if !known {
			i = len(all)
			at[key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], result)
	}
	return all
}

// How much of it fits a table; all of it is in the JSON.
const (
	tableSubjects = 5
	tableEvidence = 8
)

// subjects names those of results that say the same, up to where something else follows; "" if they are about no subject.
func subjects(same []Result) string {
	if same[0].Subject == "" {
		return ""
	}
	var names []string
	for _, result := range same[:min(len(same), tableSubjects)] {
		names = append(names, result.Subject)
	}
	text := strings.Join(names, ", ")
	if more := len(same) - tableSubjects; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ": "
}

func problemText(same []Result) string {
	first := same[0]
	var text strings.Builder
	text.WriteString(string(first.Verdict) + ": " + subjects(same) + first.Reason + "\n")
	fmt.Fprintf(&text, "    should: %s\n", first.Check)
	for _, evidence := range first.Evidence[:min(len(first.Evidence), tableEvidence)] {
		fmt.Fprintf(&text, "    %s\n", evidence)
	}
	if more := len(first.Evidence) - tableEvidence; more > 0 {
		fmt.Fprintf(&text, "    (%d more lines in the JSON)\n", more)
	}
	for command := range strings.SplitSeq(first.Command, "; ") {
		if command != "" {
			fmt.Fprintf(&text, "    more:   %s\n", command)
		}
	}
	return text.String()
}

// group is the results of one check.
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

// verdict is the worst one of the group. What is blocked is worse than what has passed: nobody has looked at it.
func (g group) verdict() Verdict {
	verdict, worst := Skipped, 0
	for _, result := range g.results {
		rank := map[Verdict]int{Passed: 1, Failed: 3}[result.Verdict]
		if result.Blocked {
			rank = 2
		}
		if rank > worst {
			verdict, worst = result.Verdict, rank
		}
	}
	return verdict
}

func (g group) summary() string {
	hold, judged, notes := 0, 0, map[string]int{}
	for _, result := range g.results {
		if !result.reported() {
			judged++
		}
		if result.Verdict == Passed {
			hold++
		}
		if result.Reason != "" && result.Verdict != Failed && !result.reported() {
			notes[result.Reason]++
		}
	}
	line := fmt.Sprintf("%-7s  %s", g.verdict(), g.check)
	if judged > 1 {
		line += fmt.Sprintf(" (%d of %d)", hold, judged)
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
