package probe

import (
	"fmt"
	"strings"
	"time"
)

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
