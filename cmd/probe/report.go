package probe

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/picture"
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

// flag adds the flag to a command.
func (o *output) flag(c *cobra.Command) {
	o.name = "report"
	c.Flags().VarP(o, "output", "o", "`form` of the output: report (table, and one line of JSON if all conditions hold), table, "+
		"json (every result), or html (a page)")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formNames(), cobra.ShellCompDirectiveNoFileComp))
}

func formNames() []string { return slices.Sorted(maps.Keys(forms)) }

func (o *output) String() string { return o.name }

// Type implements pflag.Value.
func (o *output) Type() string { return "form" }

// Set implements pflag.Value.
func (o *output) Set(name string) error {
	if forms[name].write == nil {
		return fmt.Errorf("%q is not a form; use %s", name, strings.Join(formNames(), ", "))
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
func (o *output) write(report health.Report, end health.End, c *cobra.Command) error {
	form := forms[o.name]
	if form.all {
		report.Results = end.Results
	}
	if err := form.write(o, report, c.OutOrStdout()); err != nil {
		return err
	}
	if report.Outcome != health.Open {
		return fmt.Errorf("%s: %s", report.Cluster, report.Sentence())
	}
	fmt.Fprintln(c.ErrOrStderr(), report.Sentence())
	return nil
}
