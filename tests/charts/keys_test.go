package charts

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the list of the chart's keys anew")

const keysFile = "../../components/cilium/chart/chartkeys.txt"

var (
	usedValue = regexp.MustCompile(`\.Values((?:\.[A-Za-z][A-Za-z0-9_]*)+)`)
	inComment = regexp.MustCompile(`^( *)# ?([A-Za-z][A-Za-z0-9]*):( |$)`)
	written   = regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):( |$)`)
)

// chartKeys are all keys of the chart's values: those with a default, those in its schema, those that a template uses, and those that
// the file of the defaults shows in a comment.
func chartKeys(t *testing.T) string {
	t.Helper()
	chart, err := theChart()
	require.NoError(t, err)
	keys := map[string]bool{}
	add := func(path string) {
		for ; path != ""; path = path[:max(strings.LastIndex(path, "."), 0)] {
			keys[path] = true
		}
	}
	var values, schema func(path string, tree map[string]any)
	values = func(path string, tree map[string]any) {
		for key, value := range tree {
			at := strings.TrimPrefix(path+"."+key, ".")
			add(at)
			if below, ok := value.(map[string]any); ok {
				values(at, below)
			}
		}
	}
	schema = func(path string, tree map[string]any) {
		properties, _ := tree["properties"].(map[string]any)
		for key, value := range properties {
			at := strings.TrimPrefix(path+"."+key, ".")
			add(at)
			if below, ok := value.(map[string]any); ok {
				schema(at, below)
			}
		}
	}
	values("", chart.Values)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(chart.Schema, &tree))
	schema("", tree)
	for _, template := range chart.Templates {
		for _, match := range usedValue.FindAllStringSubmatch(string(template.Data), -1) {
			add(strings.TrimPrefix(match[1], "."))
		}
	}
	for _, file := range chart.Raw {
		if file.Name != "values.yaml" {
			continue
		}
		var above []string // by half the indentation
		for line := range strings.Lines(string(file.Data)) {
			line = strings.TrimRight(line, "\n")
			if match := written.FindStringSubmatch(line); match != nil {
				depth := len(match[1]) / 2
				above = append(above[:min(depth, len(above))], match[2])
			} else if match := inComment.FindStringSubmatch(line); match != nil && len(match[1])/2 <= len(above) {
				add(strings.Join(append(slices.Clone(above[:len(match[1])/2]), match[2]), "."))
			}
		}
	}
	return chart.Metadata.Version + "\n" + strings.Join(slices.Sorted(maps.Keys(keys)), "\n") + "\n"
}

func TestKeys_AreThoseOfTheChart(t *testing.T) {
	want := chartKeys(t)
	if *update {
		require.NoError(t, os.WriteFile(keysFile, []byte(want), 0o644))
	}
	have, err := os.ReadFile(keysFile)
	require.NoError(t, err)
	assert.Equal(t, want, string(have), "run make golden")
	assert.Greater(t, strings.Count(want, "\n"), 1000)
	for _, key := range []string{"\nl2announcements.leaseDuration\n", "\nMTU\n", "\nhubble.metrics.enabled\n"} {
		assert.Contains(t, want, key)
	}
}
