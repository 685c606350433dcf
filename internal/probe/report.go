package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is the result of a run that changes a cluster. It is written as JSON, too, and holds no secret.
type Report interface {
	Sentence() string // the result in one sentence
	Text() string     // the result for people, in lines
}

// Head is the part that reports have in common.
type Head struct {
	Kind    string   `json:"kind"` // the subcommand
	Cluster string   `json:"cluster"`
	Took    Duration `json:"took"`
}

// After returns the duration of the run for a sentence.
func (h Head) After() string { return Took(time.Duration(h.Took)) }

// Lines returns a line for each of the texts, with a prefix.
func Lines(prefix string, texts []string) string {
	var lines strings.Builder
	for _, text := range texts {
		lines.WriteString(prefix + text + "\n")
	}
	return lines.String()
}

// Line returns a line with a text and a prefix; "" without a text.
func Line(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text + "\n"
}

// Write writes a report as text, and then as JSON on one line.
func Write(w io.Writer, report Report) error {
	line, err := json.Marshal(report)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", report.Text(), line)
	return err
}

// ReportLine returns the last line of the probe's standard output: the report as JSON.
func ReportLine(stdout string) string {
	stdout = strings.TrimRight(stdout, "\n")
	return stdout[strings.LastIndex(stdout, "\n")+1:]
}

// Took returns a duration for a sentence: "5.4 s", or "12m30s" from a minute on.
func Took(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
