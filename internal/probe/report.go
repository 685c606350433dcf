package probe

import "strings"

// ReportLine is the last line of the probe's output: the report as JSON.
func ReportLine(stdout string) string {
	stdout = strings.TrimRight(stdout, "\n")
	return stdout[strings.LastIndex(stdout, "\n")+1:]
}
