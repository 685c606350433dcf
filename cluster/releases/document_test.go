package releases_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster/releases"
)

var update = flag.Bool("update", false, "write the table of releases into the document")

// The tables are written once, in Go. The document shows each between two comments.
func TestDocument_HasTheTablesOfPinsAndReleases(t *testing.T) {
	const file = "../../docs/versions.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := string(text)
	for name, content := range map[string]string{"pins": pinTable(t), "releases": table()} {
		from, to := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(want, from)
		require.True(t, found)
		_, after, found := strings.Cut(rest, to)
		require.True(t, found)
		want = before + from + content + to + after
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "run: make golden")
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
