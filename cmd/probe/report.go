package probe

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/picture"
)

// form is a value of -o.
type form struct {
	all   bool // the report has every result
	write func(*output, health.Report, io.Writer) error
}

var forms = map[string]form{
	"report": {write: func(_ *output, report health.Report, w io.Writer) error { return report.Write(w) }},
	"table":  {write: func(_ *output, report health.Report, w io.Writer) error { return report.WriteTable(w) }},
	"json":   {all: true, write: func(_ *output, report health.Report, w io.Writer) error { return report.WriteJSON(w) }},
	"html":   {all: true, write: (*output).writePage},
}

// output is the value of -o.
type output struct {
	name     string
	declared picture.Cluster // for the page
}

func (o *output) flag(flags *flag.FlagSet) {
	o.name = "report"
	flags.Var(o, "o", "`form` of the output: report (table, and one line of JSON if all conditions hold), table, json (every result), "+
		"or html (a page)")
}

func (o *output) String() string { return o.name }

// Set implements flag.Value.
func (o *output) Set(name string) error {
	if forms[name].write == nil {
		return fmt.Errorf("-o: %q is not a form; use %s", name, strings.Join(slices.Sorted(maps.Keys(forms)), ", "))
	}
	o.name = name
	return nil
}

func (o *output) writePage(report health.Report, w io.Writer) error {
	page := o.declared
	page.Found = []health.Report{report}
	return page.Write(w)
}

// write writes the report of a wait to standard output and, if the wait ended open, a sentence to standard error. Otherwise it returns the
// sentence as an error.
func (o *output) write(report health.Report, end health.End, c call) error {
	form := forms[o.name]
	if form.all {
		report.Results = end.Results
	}
	if err := form.write(o, report, c.stdout); err != nil {
		return err
	}
	if report.Outcome != health.Open {
		return fmt.Errorf("%s: %s", report.Cluster, report.Sentence())
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return nil
}
