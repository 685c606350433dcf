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
	text, err := os.ReadFile(filepath.Join(repository, "docs", "changes.md"))
	require.NoError(t, err)
	_, matrix, found := strings.Cut(string(text), "<!-- matrix: ")
	require.True(t, found)
	matrix, _, found = strings.Cut(matrix, "<!-- end of matrix -->")
	require.True(t, found)
	covered := map[string]bool{}
	for line := range strings.Lines(matrix) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| ---") {
			continue
		}
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
