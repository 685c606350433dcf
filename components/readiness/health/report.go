package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is what a probe ends with. It holds no secret.
type Report struct {
	Kind      string   `json:"kind"` // gate or handover
	Cluster   string   `json:"cluster"`
	Outcome   Outcome  `json:"outcome"`
	Revision  string   `json:"revision,omitempty"` // that Flux applied; handover only
	Waited    Duration `json:"waited"`
	Since     Duration `json:"sinceLastCondition,omitempty"` // from the last condition becoming true to open, the stability window included
	Stable    Duration `json:"stabilityWindow"`
	Last      string   `json:"lastCondition,omitempty"` // the condition that became true last
	APICalls  int64    `json:"apiCalls"`                // requests to Kubernetes and Talos
	Summaries []string `json:"summaries"`               // one line a check
	Problems  []Result `json:"problems,omitempty"`      // what is not passed
}

// NewReport makes the report of a wait that has ended.
func NewReport(kind, cluster string, stableFor Duration, end End, apiCalls int64) Report {
	report := Report{
		Kind: kind, Cluster: cluster, Outcome: end.Outcome, APICalls: apiCalls, Stable: stableFor,
		Waited: Duration(end.Waited.Round(time.Millisecond)), Since: Duration(end.Since.Round(time.Millisecond)),
	}
	if end.Last != nil {
		report.Last = end.Last.sentence()
	}
	for _, group := range groups(end.Results) {
		report.Summaries = append(report.Summaries, group.summary())
		for _, result := range group.results {
			if result.Verdict == Failed || result.Verdict == Warning {
				report.Problems = append(report.Problems, result)
			}
		}
	}
	return report
}

// Write writes the report for a person, and then on one line as JSON.
func (r Report) Write(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s of %s: %s after %s", r.Kind, r.Cluster, r.Outcome, r.Waited)
	if r.Outcome == Open {
		fmt.Fprintf(&text, ", %s after the last condition became true", r.Since)
		if r.Last != "" {
			fmt.Fprintf(&text, " (%s)", r.Last)
		}
	}
	fmt.Fprintf(&text, ", %d API calls\n", r.APICalls)
	if r.Revision != "" {
		fmt.Fprintf(&text, "revision %s\n", r.Revision)
	}
	for _, summary := range r.Summaries {
		fmt.Fprintf(&text, "  %s\n", summary)
	}
	for _, problem := range r.Problems {
		text.WriteString(problem.text())
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", text.String(), line)
	return err
}

// ReportLine is the last line of a probe's output: the report as JSON.
func ReportLine(stdout string) string {
	stdout = strings.TrimRight(stdout, "\n")
	return stdout[strings.LastIndex(stdout, "\n")+1:]
}

// ReportFrom reads the report out of a probe's output.
func ReportFrom(stdout string) (Report, error) {
	line := ReportLine(stdout)
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

func (r Result) text() string {
	var text strings.Builder
	text.WriteString(string(r.Verdict) + ": ")
	if r.Subject != "" {
		text.WriteString(r.Subject + ": ")
	}
	text.WriteString(r.Reason + "\n")
	fmt.Fprintf(&text, "    should: %s\n", r.Check)
	for _, evidence := range r.Evidence {
		fmt.Fprintf(&text, "    %s\n", evidence)
	}
	if r.Command != "" {
		fmt.Fprintf(&text, "    more:   %s\n", r.Command)
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

// verdict is the worst one of the group.
func (g group) verdict() Verdict {
	worst := Skipped
	rank := map[Verdict]int{Skipped: 0, Passed: 1, Warning: 2, Failed: 3}
	for _, result := range g.results {
		if rank[result.Verdict] > rank[worst] {
			worst = result.Verdict
		}
	}
	return worst
}

func (g group) summary() string {
	hold, note := 0, ""
	for _, result := range g.results {
		if result.Verdict == Passed {
			hold++
		}
		if result.Verdict == Passed || result.Verdict == Skipped {
			note = result.Reason
		}
	}
	line := fmt.Sprintf("%-7s  %s", g.verdict(), g.check)
	if len(g.results) > 1 {
		line += fmt.Sprintf(" (%d of %d)", hold, len(g.results))
	} else if note != "" {
		line += " (" + note + ")"
	}
	return line
}
