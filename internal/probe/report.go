package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteReport writes a report as text for people, and then as JSON on one line.
func WriteReport(w io.Writer, text string, report any) error {
	line, err := json.Marshal(report)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", text, line)
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
