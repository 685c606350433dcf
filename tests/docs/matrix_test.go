package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks/config"
)

// matrixSection matches the section of a key, at the beginning of a code span.
var matrixSection = regexp.MustCompile("`([a-zA-Z]+)(?:\\[\\])?[.`:]")

func TestMatrix_EachSectionOfTheStackFilesIsInARow(t *testing.T) {
	matrix := matrixOfChanges(t)
	covered := map[string]bool{}
	for _, cells := range rowsOf(matrix) {
		for _, section := range matrixSection.FindAllStringSubmatch(cells[0], -1) {
			covered[section[1]] = true
		}
		for _, span := range spans.FindAllString(cells[0], -1) {
			if key := strings.Trim(span, "`"); strings.Contains(key, ".") && !strings.Contains(key, "/") {
				name, _, _ := strings.Cut(key, ":")
				assert.NoError(t, checkKey(name), key)
			}
		}
	}
	for _, key := range dangerous(t) {
		assert.Contains(t, matrix, "`"+key, "preview/report/danger.go says that a change of %s is dangerous", key)
	}
	known, err := sections()
	require.NoError(t, err)
	looked := 0
	for _, key := range config.Keys() {
		name := strings.TrimPrefix(key, config.Namespace+":")
		if _, secret := known[name].Properties["secure"]; secret {
			continue
		}
		looked++
		assert.True(t, covered[name], "docs/changes.md: the matrix has no row about %s", name)
	}
	assert.Greater(t, looked, 15)
}

// rowInLab matches a row of the matrix that a lab test names, with the beginning of what it says.
var rowInLab = regexp.MustCompile(`cell: "([^"]+)", does: "([^"]+)"`)

func TestMatrix_EachRowOfTheLabTestIsInIt(t *testing.T) {
	says := map[string]string{}
	for _, cells := range rowsOf(matrixOfChanges(t)) {
		says[cells[0]] = cells[2]
	}
	text, err := os.ReadFile(filepath.Join(repository, "tests", "e2e", "changes_test.go"))
	require.NoError(t, err)
	named := rowInLab.FindAllStringSubmatch(string(text), -1)
	require.Len(t, named, strings.Count(string(text), "cell:"), "a row is not written as cell and does in one line")
	for _, row := range named {
		assert.True(t, strings.HasPrefix(says[row[1]], row[2]), "docs/changes.md says of %s: %q, and not %q", row[1], says[row[1]], row[2])
	}
	assert.Greater(t, len(named), 20)
}

// matrixOfChanges returns the matrix in docs/changes.md.
func matrixOfChanges(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "changes.md"))
	require.NoError(t, err)
	_, matrix, found := strings.Cut(string(text), "<!-- matrix: ")
	require.True(t, found)
	matrix, _, found = strings.Cut(matrix, "<!-- end of matrix -->")
	require.True(t, found)
	return matrix
}

// rowsOf returns the cells of each row of the matrix: what is changed, where, and what that does.
func rowsOf(matrix string) (rows [][]string) {
	for line := range strings.Lines(matrix) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "| "), " |"), " | ")
		if len(cells) == 3 && !strings.HasPrefix(line, "| ---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

var dangerousKey = regexp.MustCompile(`(?m)^\t\{"([a-zA-Z.]+)", "`)

// dangerous returns the keys whose change on a running cluster make preview warns of.
func dangerous(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "preview", "report", "danger.go"))
	require.NoError(t, err)
	var keys []string
	for _, found := range dangerousKey.FindAllStringSubmatch(string(text), -1) {
		keys = append(keys, found[1])
	}
	require.Greater(t, len(keys), 10)
	return keys
}
