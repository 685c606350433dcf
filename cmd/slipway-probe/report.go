package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// outputs write a report, by the value of -o.
var outputs = map[string]func(health.Report, io.Writer) error{
	"report": health.Report.Write, "table": health.Report.WriteTable, "json": health.Report.WriteJSON,
}

// output is the value of -o.
type output struct{ name string }

func (o *output) flag(flags *flag.FlagSet) {
	o.name = "report"
	flags.Var(o, "o", "`form` of the output: report (table, and one line of JSON if all conditions hold), table, or json (every result)")
}

func (o *output) String() string { return o.name }

// Set implements flag.Value.
func (o *output) Set(name string) error {
	if outputs[name] == nil {
		return fmt.Errorf("-o: %q is not a form; use %s", name, strings.Join(slices.Sorted(maps.Keys(outputs)), ", "))
	}
	o.name = name
	return nil
}

// write writes the report of a wait to standard output and, if the wait ended open, a sentence to standard error. Otherwise it returns the
// sentence as an error.
func (o *output) write(report health.Report, end health.End, c call) error {
	if o.name == "json" {
		report.Results = end.Results
	}
	if err := outputs[o.name](report, c.stdout); err != nil {
		return err
	}
	if report.Outcome != health.Open {
		return fmt.Errorf("%s: %s", report.Cluster, report.Sentence())
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return nil
}
