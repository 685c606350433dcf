package probe

import "strings"

// ReportLine returns the last line of the probe's standard output: the report as JSON.
func ReportLine(stdout string) string {
	stdout = strings.TrimRight(stdout, "\n")
	return stdout[strings.LastIndex(stdout, "\n")+1:]
}
