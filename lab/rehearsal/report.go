package rehearsal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// seconds prints a duration to a tenth of a second.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// heading prints the heading of a step.
func heading(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "\n== %s\n", fmt.Sprintf(format, args...))
}

// table prints rows with aligned columns, indented.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, "   "+strings.Join(row, "\t"))
	}
	t.Flush()
}

// indent indents text, to be printed below a heading.
func indent(text string) string {
	return "   " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n   ") + "\n"
}

// report is the part of a gate's report, from a stack's outputs, that is printed here.
type report struct {
	Kind               string   `json:"kind"`
	Outcome            string   `json:"outcome"`
	Waited             string   `json:"waited"`
	SinceLastCondition string   `json:"sinceLastCondition"`
	Revision           string   `json:"revision"`
	Summaries          []string `json:"summaries"`
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "   %s: %s after %s, %s after its last condition became true\n", r.Kind, r.Outcome, r.Waited, r.SinceLastCondition)
	for _, line := range r.Summaries {
		fmt.Fprintf(w, "     %s\n", line)
	}
	if r.Revision != "" {
		fmt.Fprintf(w, "     Flux has applied %s\n", r.Revision)
	}
	fmt.Fprintln(w)
}
