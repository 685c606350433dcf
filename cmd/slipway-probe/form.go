package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/slipway-platform/slipway/internal/health"
)

// form is how a wait answers.
type form struct {
	output string // a key of outputs
	once   bool   // look, and do not wait for what does not hold
}

// outputs are the forms of a report, by the value of -o.
var outputs = map[string]func(health.Report, io.Writer) error{
	"report": health.Report.Write, "table": health.Report.WriteTable, "json": health.Report.WriteJSON,
}

func (f *form) flags(flags *flag.FlagSet) {
	flags.BoolVar(&f.once, "once", false, "look once and do not wait for what does not hold")
	flags.StringVar(&f.output, "o", "report", "`form` of the output: report (table, and one line of JSON), table, or json (every result)")
}

func (f *form) validate() error {
	if outputs[f.output] == nil {
		return fmt.Errorf("-o: %q is no form; use report, table or json", f.output)
	}
	return nil
}

// conclude writes the report of a wait and makes the exit code of it.
func (f *form) conclude(report health.Report, end health.End, stdout io.Writer) (int, error) {
	if f.output == "json" {
		report.Results = end.Results
	}
	if err := outputs[f.output](report, stdout); err != nil {
		return exitUnhealthy, err
	}
	if report.Outcome == health.Open {
		return exitOpen, nil
	}
	return exitUnhealthy, fmt.Errorf("%s: %s", report.Cluster, report.Outcome)
}
