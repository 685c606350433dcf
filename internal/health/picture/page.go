// Package picture writes what an update or a gate has found as one HTML page, for people: without a server, without scripts, and without
// anything from elsewhere. Of resources it shows names, types, times and messages, and never inputs or outputs; what may be a secret in a
// message is hidden. It imports no Pulumi: it reads the event log and the exported state as files.
package picture

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

//go:embed page.html page.css
var files embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"style": func() (template.CSS, error) {
		css, err := files.ReadFile("page.css")
		return template.CSS(css), err //nolint:gosec // the embedded file
	},
}).ParseFS(files, "page.html"))

// page is what the template shows. A part that is empty is left out.
type page struct {
	Title, Lead string
	State       state
	Facts       []fact
	Failures    []failure
	Others      []failure // messages of what did not fail
	Nodes       *nodesPicture
	Mesh        *meshPicture
	Gates       []gateView
	Run         *runView
	Notes       []string
}

// fact is a term and its value.
type fact struct{ Term, Value string }

// failure is what went wrong, with its evidence.
type failure struct {
	Name, Type, Link string
	Broken           bool       // it failed
	Messages         [][]string // each as its lines
	Said             []string   // what the operation printed
}

// gateView is a gate's report.
type gateView struct {
	ID, Title, Sentence string
	State               state
	During              bool   // it ran in the update that the page is about
	When                string // in which run, if not in this one
	Conditions          []conditionView
	Problems            []problemView
	Flaps               []string
}

// conditionView is a check of a gate.
type conditionView struct {
	State    state
	Verdict  string
	Text     string
	After    string // when it began to hold, from the beginning of the wait; "" if it does not
	Last     string // the subject for which it held last
	Bar      bar
	HasBar   bool
	DuringUp string // when it began to hold, from the beginning of the update; "" if that is not known
}

// problemView is a problem of a report.
type problemView struct {
	State                  state
	Verdict, Subject, Text string
	Check                  string
	Evidence, Commands     []string
}

// Write writes the page of a cluster as its gates have found it, e.g. for a running cluster.
func (c Cluster) Write(w io.Writer) error {
	p := page{Title: "Gate", State: unknown}
	if len(c.Found) > 0 {
		first := c.Found[0]
		p.Title = fmt.Sprintf("%s of %s", first.Kind, first.Cluster)
		p.Lead, p.State = first.Sentence(), outcome(first)
		if !first.Began.IsZero() {
			p.Facts = append(p.Facts, fact{"Began", clock(first.Began)})
		}
		p.Facts = append(p.Facts, fact{"Waited", took(time.Duration(first.Waited))}, fact{"API calls", fmt.Sprint(first.APICalls)},
			fact{"All must hold without a break for", first.Stable.String()})
		if first.Last != "" {
			p.Facts = append(p.Facts, fact{"Last condition", first.Last})
		}
	}
	p.Nodes, p.Mesh = c.nodes(), c.mesh()
	for i, report := range c.Found {
		p.Gates = append(p.Gates, newGateView(i, report, nil))
	}
	return pageTemplate.Execute(w, p)
}

// outcome is the state that a report's outcome stands for.
func outcome(r health.Report) state {
	if r.Outcome == health.Open {
		return good
	}
	return bad
}

// newGateView shows a report. run is the update that the report may be part of; nil if there is none.
func newGateView(i int, report health.Report, run *Run) gateView {
	view := gateView{
		ID: fmt.Sprintf("gate-%d", i), Title: fmt.Sprintf("%s of %s", report.Kind, report.Cluster), Sentence: report.Sentence(),
		State: outcome(report), Flaps: report.Flaps,
	}
	during := run != nil && !report.Began.IsZero() && !report.Began.Before(run.Began.Add(-time.Second)) && !report.Began.After(run.Ended)
	view.During = during
	if run != nil && !during {
		view.When = "It did not run in this update; the report is that of an earlier one."
		if !report.Began.IsZero() {
			view.When = "It did not run in this update; the report is that of " + clock(report.Began) + "."
		}
	}
	whole := scale{from: time.Time{}, to: time.Time{}.Add(max(time.Millisecond, time.Duration(report.Waited)))}
	for _, line := range report.Summaries {
		verdict, text, _ := strings.Cut(line, " ")
		condition := conditionView{Verdict: verdict, Text: strings.TrimSpace(text), State: verdictState(health.Verdict(verdict))}
		if held := heldSince(report.Held, condition.Text); held != nil && condition.State == good {
			after := time.Duration(held.After)
			condition.After, condition.Last = took(after), held.Last
			condition.Bar, condition.HasBar = whole.bar(time.Time{}.Add(after), whole.to, "held"), true
			if during {
				condition.DuringUp = took(report.Began.Add(after).Sub(run.Began))
			}
		}
		view.Conditions = append(view.Conditions, condition)
	}
	for _, result := range report.Problems {
		view.Problems = append(view.Problems, newProblemView(result))
	}
	return view
}

func verdictState(v health.Verdict) state {
	switch v {
	case health.Passed:
		return good
	case health.Failed:
		return bad
	}
	return none
}

// heldSince finds when the check of a summary began to hold: the longest name that the summary begins with.
func heldSince(all []health.Held, summary string) *health.Held {
	var found *health.Held
	for i := range all {
		if strings.HasPrefix(summary, all[i].Check) && (found == nil || len(all[i].Check) > len(found.Check)) {
			found = &all[i]
		}
	}
	return found
}

func newProblemView(result health.Result) problemView {
	view := problemView{
		State: verdictState(result.Verdict), Verdict: string(result.Verdict), Subject: result.Subject, Check: result.Check,
		Text: secrecy.Line(result.Reason),
	}
	if len(result.Evidence) > 0 {
		view.Evidence = secrecy.Lines(strings.Join(result.Evidence, "\n"))
	}
	view.Commands = slices.DeleteFunc(strings.Split(result.Command, "; "), func(command string) bool { return command == "" })
	return view
}

// scale places times in a bar of a whole.
type scale struct{ from, to time.Time }

// bar is a part of a whole, as percentages for CSS.
type bar struct{ Left, Width, Class string }

// narrowest is the least width of a bar, in percent, so that it can be seen.
const narrowest = 0.6

func (s scale) bar(from, to time.Time, class string) bar {
	whole := float64(max(1, s.to.Sub(s.from)))
	percent := func(at time.Time) float64 { return min(100, max(0, 100*float64(at.Sub(s.from))/whole)) }
	left := min(percent(from), 100-narrowest)
	return bar{fmt.Sprintf("%.2f%%", left), fmt.Sprintf("%.2f%%", max(narrowest, percent(to)-left)), class}
}

// took is a duration for people: "5.4 s", from a minute on "2m5s".
func took(d time.Duration) string { return probe.Took(d) }

// clock is a point in time for people.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// share is a part of a whole in percent.
func share(part, whole time.Duration) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}
