// Package healthtest holds what the tests of the health packages share: golden files and reports.
package healthtest

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
)

var update = flag.Bool("update", false, "write the golden files")

// Golden compares text with a file in testdata.
func Golden(t *testing.T, name, text string) {
	t.Helper()
	assert.Equal(t, read(t, name, text), text)
}

// Cases compares texts by name with the sections of one file in testdata. Each section begins with "== name".
func Cases(t *testing.T, name string, cases map[string]string) {
	t.Helper()
	var all strings.Builder
	for _, title := range slices.Sorted(maps.Keys(cases)) {
		all.WriteString("== " + title + "\n" + cases[title])
	}
	want := map[string]string{}
	for section := range strings.SplitSeq("\n"+read(t, name, all.String()), "\n== ") {
		if title, text, found := strings.Cut(section, "\n"); found {
			want[title] = strings.TrimSuffix(text, "\n") + "\n"
		}
	}
	for title, text := range cases {
		t.Run(title, func(t *testing.T) { assert.Equal(t, want[title], text) })
		delete(want, title)
	}
	assert.Empty(t, want, "%s has sections without a case", name)
}

// Section compares text with a section of a document that the tests write.
func Section(t *testing.T, document, name, text string) {
	t.Helper()
	begin, end := "<!-- "+name+": written by go test ./internal/health -update -->\n", "<!-- end of "+name+" -->\n"
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(content), begin)
	section, after, ends := strings.Cut(rest, end)
	require.True(t, begins && ends, "%s has no section between %q and %q", document, begin, end)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+begin+text+end+after), 0o644))
		return
	}
	assert.Equal(t, text, section, "run go test ./internal/health -update")
}

func read(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(want)
}

// Report is the text of a report with these results, as if a wait had ended closed.
func Report(t *testing.T, kind string, results []health.Result) string {
	t.Helper()
	target := health.Target{Cluster: "infra"}
	target.SetDefaults()
	var text strings.Builder
	end := health.End{Outcome: health.Closed, Results: results, Waited: time.Minute}
	require.NoError(t, health.NewReport(kind, target, end, 42).WriteTable(&text))
	return text.String()
}

// Differing returns the lines of a text that the base does not have, after the lines of the base that are gone, each with "- " before
// it. The line of a check is not gone if only its verdict, or the text in parentheses after its name, differs.
func Differing(base, text string) string {
	before, after := slices.Collect(strings.Lines(base)), slices.Collect(strings.Lines(text))
	var differing strings.Builder
	for _, line := range before {
		if !slices.ContainsFunc(after, func(other string) bool { return other == line || aboutSame(line, other) }) {
			differing.WriteString("- " + line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			differing.WriteString(line)
		}
	}
	return differing.String()
}

// checkLine matches the line of a check in a report: verdict, name, and how many hold.
var checkLine = regexp.MustCompile(`^  [a-z]+ +([^(\n]+)`)

// aboutSame reports whether two lines are those of the same check.
func aboutSame(a, b string) bool {
	first, second := checkLine.FindStringSubmatch(a), checkLine.FindStringSubmatch(b)
	return first != nil && second != nil && strings.TrimSpace(first[1]) == strings.TrimSpace(second[1])
}
