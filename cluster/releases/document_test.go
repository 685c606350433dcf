package releases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/cluster/releases"
	"github.com/slipway-platform/slipway/tests/golden"
)

// The tables are written once, in Go. The document shows each between two comments.
func TestDocument_HasTheTablesOfPinsAndReleases(t *testing.T) {
	golden.Part(t, "../../docs/versions.md", "pins", pinTable(t))
	golden.Part(t, "../../docs/versions.md", "releases", table())
}

// table writes the releases as Markdown.
func table() string {
	var text strings.Builder
	for _, project := range releases.All {
		fmt.Fprintf(&text, "\n### %s\n\nSupported: %s. Source: <%s>\n\n| release | supported until | goes with |\n| --- | --- | --- |\n",
			project.Name, project.Policy, strings.Split(project.Source, " ")[0])
		for _, one := range project.Minors {
			var with []string
			for _, fit := range one.With {
				kind := " (tested)"
				if fit.Refused {
					kind = ""
				}
				with = append(with, fit.Project+" "+fit.String()+kind)
			}
			until := append([]string{}, one.Notes...)
			if one.Ended != "" {
				until = append([]string{one.Ended}, until...)
			}
			fmt.Fprintf(&text, "| %s | %s | %s |\n", one.Minor, strings.Join(until, "; "), strings.Join(with, ", "))
		}
	}
	return text.String() + "\n"
}
