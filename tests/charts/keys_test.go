package charts

import (
	"cmp"
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

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

var update = flag.Bool("update", false, "write the list of the chart's keys anew")

const keysFile = "../../components/cilium/chart/chartkeys.txt"

var (
	usedValue = regexp.MustCompile(`\.Values((?:\.[A-Za-z][A-Za-z0-9_]*)+)`)
	inComment = regexp.MustCompile(`^( *)# ?([A-Za-z][A-Za-z0-9]*):( |$)`)
	written   = regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):( |$)`)

	// writtenWhole are the ways in which a template writes a value as it is, so that any keys may be below it: nodeSelector, affinity, …
	writtenWhole = []*regexp.Regexp{
		regexp.MustCompile(`toYaml \(?\.Values((?:\.\w+)+)`),
		regexp.MustCompile(`\.Values((?:\.\w+)+)\)? \| to(?:Yaml|Json)`),
		regexp.MustCompile(`range \$\w+, \$\w+ := \.Values((?:\.\w+)+)`),
		regexp.MustCompile(`with \.Values((?:\.\w+)+)\s*-?}}(?:\n[^\n]*){0,4}?toYaml \. `),
	}
)

// keySchema is the part of the chart's JSON schema that the list takes over.
type keySchema struct {
	Type       any                  `json:"type"` // a text or a list of texts
	Enum       []string             `json:"enum"`
	Properties map[string]keySchema `json:"properties"`
}

// words are the kinds and the allowed texts as the list has them.
func (s keySchema) words() string {
	var kinds []string
	switch kind := s.Type.(type) {
	case string:
		kinds = []string{kind}
	case []any:
		for _, one := range kind {
			kinds = append(kinds, one.(string))
		}
	}
	if len(s.Enum) > 0 {
		kinds = []string{"string"}
	}
	slices.Sort(kinds)
	return strings.TrimSpace(strings.Join(kinds, ",") + " " + strings.Join(s.Enum, ","))
}

// chartKeys are all keys of the chart's values: those with a default, those in its schema, those that a template uses, and those that
// the file of the defaults shows in a comment; without those below a value that a template writes as it is.
func chartKeys(t *testing.T) string {
	t.Helper()
	chart, err := theChart()
	require.NoError(t, err)
	keys := map[string]string{} // with what the schema says
	add := func(path, words string) {
		keys[path] = cmp.Or(words, keys[path])
		for path = above(path); path != ""; path = above(path) {
			keys[path] = keys[path]
		}
	}
	var values func(path string, tree map[string]any)
	var schema func(path string, of keySchema)
	values = func(path string, tree map[string]any) {
		for key, value := range tree {
			at := strings.TrimPrefix(path+"."+key, ".")
			add(at, "")
			if below, ok := value.(map[string]any); ok {
				values(at, below)
			}
		}
	}
	schema = func(path string, of keySchema) {
		for key, below := range of.Properties {
			at := strings.TrimPrefix(path+"."+key, ".")
			add(at, below.words())
			schema(at, below)
		}
	}
	values("", chart.Values)
	var tree keySchema
	require.NoError(t, json.Unmarshal(chart.Schema, &tree))
	schema("", tree)
	whole := map[string]bool{}
	for _, template := range chart.Templates {
		for _, match := range usedValue.FindAllStringSubmatch(string(template.Data), -1) {
			add(strings.TrimPrefix(match[1], "."), "")
		}
		for _, form := range writtenWhole {
			for _, match := range form.FindAllStringSubmatch(string(template.Data), -1) {
				whole[strings.TrimPrefix(match[1], ".")] = true
			}
		}
	}
	for _, file := range chart.Raw {
		if file.Name != "values.yaml" {
			continue
		}
		var over []string // by half the indentation
		for line := range strings.Lines(string(file.Data)) {
			line = strings.TrimRight(line, "\n")
			if match := written.FindStringSubmatch(line); match != nil {
				depth := len(match[1]) / 2
				over = append(over[:min(depth, len(over))], match[2])
			} else if match := inComment.FindStringSubmatch(line); match != nil && len(match[1])/2 <= len(over) {
				add(strings.Join(append(slices.Clone(over[:len(match[1])/2]), match[2]), "."), "")
			}
		}
	}
	lines := []string{chart.Metadata.Version}
	for _, path := range slices.Sorted(maps.Keys(keys)) {
		free := false
		for at := above(path); at != ""; at = above(at) {
			free = free || whole[at]
		}
		if !free {
			lines = append(lines, strings.TrimSpace(path+" "+keys[path]))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// above is the path of the mapping with the key at a path.
func above(path string) string { return path[:max(strings.LastIndex(path, "."), 0)] }

func TestKeys_AreThoseOfTheChart(t *testing.T) {
	want := chartKeys(t)
	if *update {
		require.NoError(t, os.WriteFile(keysFile, []byte(want), 0o644))
	}
	have, err := os.ReadFile(keysFile)
	require.NoError(t, err)
	assert.Equal(t, want, string(have), "run make golden")
	assert.Greater(t, strings.Count(want, "\n"), 1000)
	assert.NotContains(t, want, "\nnodeSelector.", "its keys are the labels of nodes")
	for _, key := range []string{
		"\nl2announcements.leaseDuration\n", "\nMTU integer\n", "\nhubble.metrics.enabled array,null\n",
		"\nidentityManagementMode string agent,operator,both\n", "\nnodeSelector object\n",
	} {
		assert.Contains(t, want, key)
	}
}

func TestOptions_ThatSlipwaySetsAreThoseOfTheChart(t *testing.T) {
	loaded, err := theChart()
	require.NoError(t, err)
	var config string
	for _, template := range loaded.Templates {
		if strings.HasSuffix(template.Name, "/cilium-configmap.yaml") {
			config = string(template.Data)
		}
	}
	require.NotEmpty(t, config)
	keys := chartKeys(t)
	for option, value := range chart.OwnOptions {
		assert.Contains(t, config, "\n  "+option+":", option)
		assert.Contains(t, keys, "\n"+value, value)
	}
}
