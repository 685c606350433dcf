package charts

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/releases"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/golden"
)

var from = flag.String("from", "", "folder of an unpacked chart whose list is written, too: one that is in no Go module")

// keysFile is the list of the keys of a chart's values.
func keysFile(chart string) string { return "../../cluster/chartkeys/" + chart + ".txt" }

var (
	comment    = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
	usedValue  = regexp.MustCompile(`\.Values((?:\.[A-Za-z][A-Za-z0-9_]*)+)`)
	inComment  = regexp.MustCompile(`^( *)# ?([a-z][A-Za-z0-9]*):( |$)`)
	written    = regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):( |$)`)
	documented = regexp.MustCompile("(?m)^\\| *`?([a-z][A-Za-z0-9.]*)`? *\\|")

	// writtenWhole are the ways in which a template writes a value as it is, so that any keys may be below it: nodeSelector, affinity, …
	writtenWhole = []*regexp.Regexp{
		regexp.MustCompile(`toYaml \(?\.Values((?:\.\w+)+)`),
		regexp.MustCompile(`\.Values((?:\.\w+)+)\)? \| to(?:Yaml|Json)`),
		regexp.MustCompile(`range \$\w+, \$\w+ := \.Values((?:\.\w+)+)`),
		regexp.MustCompile(`with \.Values((?:\.\w+)+)\s*-?}}(?:\n[^\n]*){0,4}?toYaml \. `),
	}
)

// keySchema is the part of a chart's JSON schema that the list takes over.
type keySchema struct {
	Ref        string               `json:"$ref"`
	Defs       map[string]keySchema `json:"$defs"`
	Type       any                  `json:"type"` // a text or a list of texts
	Enum       []any                `json:"enum"`
	OneOf      []keySchema          `json:"oneOf"`
	Properties map[string]keySchema `json:"properties"`
	Additional any                  `json:"additionalProperties"`
}

// words are the kinds and the allowed texts as the list has them.
func (s keySchema) words() string {
	var kinds, texts []string
	if s.Type == nil && len(s.OneOf) > 0 { // null, or one of some texts
		for _, one := range s.OneOf {
			if kind, is := one.Type.(string); is && kind != "null" || !is && len(one.Enum) == 0 {
				return "" // of several forms
			}
			s.Enum = append(s.Enum, one.Enum...)
		}
	}
	switch kind := s.Type.(type) {
	case string:
		kinds = []string{kind}
	case []any:
		for _, one := range kind {
			kinds = append(kinds, one.(string))
		}
	}
	for _, one := range s.Enum {
		if text, is := one.(string); is {
			texts = append(texts, text)
		}
	}
	if len(s.Enum) > 0 && len(texts) == len(s.Enum) && !slices.Contains(texts, "") {
		kinds = []string{"string"}
	} else {
		texts = nil
	}
	slices.Sort(kinds)
	return strings.TrimSpace(strings.Join(kinds, ",") + " " + strings.Join(texts, ","))
}

// kindOf is the kind of a value of which there is only the default: a template writes most texts and numbers as they are.
func kindOf(key string, value any) string {
	switch value := value.(type) {
	case bool:
		return "boolean"
	case float64:
		if slices.Contains([]string{"maxSurge", "maxUnavailable", "minAvailable"}, key) {
			return "numeral,string" // or a share
		}
		return "numeral"
	case string:
		return "boolean,numeral,string"
	case []any:
		return "array"
	case map[string]any:
		if len(value) > 0 {
			return "object"
		}
	}
	return ""
}

// counted are the numbers whose default is in the list, too: what is beside them depends on it.
var counted = []string{"maxUnavailable", "minAvailable", "replicaCount", "replicas"}

// amount matches the path of an amount of cpu: 100m is no duration. Durations of Prometheus have units that Go's have not.
var amount = regexp.MustCompile(`(?i)cpu|memory|monitor`)

// isDuration tells whether a value's default is a duration, so that others are, too.
func isDuration(path, text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil && text != "0" && !amount.MatchString(path)
}

// keyList collects the keys of a chart, with what is known of their values.
type keyList map[string]string

func (l keyList) add(path, words string) {
	l[path] = cmp.Or(words, l[path])
	for path = above(path); path != ""; path = above(path) {
		l[path] += "" // the keys above it are keys, too
	}
}

// values adds the keys that have a default.
func (l keyList) values(path string, tree map[string]any, infer bool) {
	for key, value := range tree {
		at, words := strings.TrimPrefix(path+"."+key, "."), ""
		if infer {
			words = kindOf(key, value)
		}
		if words = cmp.Or(l[at], words); words == "string" || strings.HasSuffix(words, ",string") {
			if text, _ := value.(string); isDuration(at, text) {
				words = "duration"
			}
		}
		l.add(at, words)
		if below, ok := value.(map[string]any); ok {
			l.values(at, below, infer)
		}
	}
}

// defaults adds the defaults of the counted numbers to keys that are there.
func (l keyList) defaults(path string, tree map[string]any) {
	for key, value := range tree {
		at := strings.TrimPrefix(path+"."+key, ".")
		if words, known := l[at]; known && slices.Contains(counted, key) && value != nil && value != "" {
			l[at] = strings.TrimSpace(words+" =") + fmt.Sprint(value)
		}
		if below, ok := value.(map[string]any); ok {
			l.defaults(at, below)
		}
	}
}

// schema adds the keys of a JSON schema.
func (l keyList) schema(path string, root, of keySchema) {
	for key, below := range of.Properties {
		if name, is := strings.CutPrefix(below.Ref, "#/$defs/"); is {
			below = root.Defs[name]
		}
		at := strings.TrimPrefix(path+"."+key, ".")
		l.add(at, below.words())
		l.schema(at, root, below)
	}
}

// file adds the keys of the file of the defaults, also those in comments.
func (l keyList) file(text string) {
	var over []string // by half the indentation
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if match := written.FindStringSubmatch(line); match != nil {
			depth := len(match[1]) / 2
			over = append(over[:min(depth, len(over))], match[2])
		} else if match := inComment.FindStringSubmatch(line); match != nil && len(match[1])/2 <= len(over) {
			l.add(strings.Join(append(slices.Clone(over[:len(match[1])/2]), match[2]), "."), "")
		}
	}
}

// keysOf are all keys of a chart's values: those with a default, those in its schema, those that a template uses, and those that the file
// of the defaults or a table of the chart's README shows; without those below a value that a template writes as it is, or that another
// chart reads.
func keysOf(t *testing.T, chart *helmchart.Chart) string {
	t.Helper()
	keys, whole := keyList{}, map[string]bool{"global": true}
	var tree keySchema
	if len(chart.Schema) > 0 {
		require.NoError(t, json.Unmarshal(chart.Schema, &tree))
	}
	root := tree
	if name, is := strings.CutPrefix(tree.Ref, "#/$defs/"); is {
		root = tree.Defs[name]
	}
	keys.schema("", tree, root)
	if root.Additional == false { // it refuses all other keys
		keys.defaults("", chart.Values)
		return lines(chart, keys, nil)
	}
	keys.values("", chart.Values, len(root.Properties) < len(chart.Values))
	keys.defaults("", chart.Values)
	for _, template := range chart.Templates {
		for _, match := range usedValue.FindAllStringSubmatch(comment.ReplaceAllString(string(template.Data), ""), -1) {
			keys.add(strings.TrimPrefix(match[1], "."), "")
		}
		for _, form := range writtenWhole {
			for _, match := range form.FindAllStringSubmatch(string(template.Data), -1) {
				whole[strings.TrimPrefix(match[1], ".")] = true
			}
		}
	}
	// Into the last one go a program's own settings, of which the chart shows some in comments only.
	for _, path := range append(dotted("", chart.Values), "configs.params") {
		whole[path] = true
	}
	for _, dependency := range chart.Metadata.Dependencies {
		whole[cmp.Or(dependency.Alias, dependency.Name)] = true
	}
	for _, file := range chart.Raw {
		switch file.Name {
		case "values.yaml":
			keys.file(string(file.Data))
		case "README.md":
			for _, match := range documented.FindAllStringSubmatch(string(file.Data), -1) {
				keys.add(match[1], "")
			}
		}
	}
	return lines(chart, keys, whole)
}

// dotted are the mappings that have a key with a dot: a program's own settings by their names, which the list cannot write.
func dotted(path string, tree map[string]any) (paths []string) {
	for key, value := range tree {
		if strings.Contains(key, ".") {
			paths = append(paths, path)
		}
		if below, is := value.(map[string]any); is {
			paths = append(paths, dotted(strings.TrimPrefix(path+"."+key, "."), below)...)
		}
	}
	return paths
}

// lines is the list as the file has it.
func lines(chart *helmchart.Chart, keys keyList, whole map[string]bool) string {
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

// inModules are the charts that a Go module has, by their folder in it. The others' lists come from -from.
var inModules = map[string]struct{ of, module, folder string }{
	"argo-cd":        {"../../lab/tools/argo-cd-chart", "github.com/argoproj/argo-helm", "charts/argo-cd"},
	"cert-manager":   {"../../lab/tools/flux", "github.com/cert-manager/cert-manager", "deploy/charts/cert-manager"},
	"sealed-secrets": {"../tree/sources", "github.com/bitnami/sealed-secrets", "helm/sealed-secrets"},
}

// chartIn returns the chart in a folder. The sources of some have no version, and are in a module that has.
func chartIn(t *testing.T, folder string) *helmchart.Chart {
	t.Helper()
	chart, err := loader.LoadDir(folder)
	require.NoError(t, err)
	if _, of, is := strings.Cut(folder, "@"); is && chart.Metadata.Version == "v0.0.0" {
		chart.Metadata.Version, _, _ = strings.Cut(of, "/")
	}
	return chart
}

func TestKeys_AreThoseOfTheCharts(t *testing.T) {
	cilium, err := theChart()
	require.NoError(t, err)
	charts := map[string]*helmchart.Chart{"cilium": cilium}
	for name, in := range inModules {
		dir, err := moduleOf(in.of, in.module)
		require.NoError(t, err)
		charts[name] = chartIn(t, filepath.Join(dir, in.folder))
	}
	if *from != "" {
		chart := chartIn(t, *from)
		charts[chart.Name()] = chart
	}
	for name, chart := range charts {
		want := keysOf(t, chart)
		golden.File(t, keysFile(name), want)
	}
}

// Without it, a release that Renovate proposes would switch the check of its values off without a word.
func TestKeys_AreThoseOfThePinnedReleases(t *testing.T) {
	c := clusters.Infra(t)
	files, err := filepath.Glob(keysFile("*"))
	require.NoError(t, err)
	versions := map[string]string{"cilium": c.Cilium.Version}
	for _, service := range slices.Concat(c.Services(), c.Providers.Services(), []cluster.Service{c.ArgoCDService()}) {
		versions[path.Base(service.Chart)] = service.Version
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		of, _, _ := strings.Cut(string(text), "\n")
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if version := versions[name]; assert.NotEmpty(t, version, name) {
			assert.Equal(t, releases.MinorOf(version), releases.MinorOf(of),
				"%s: unpack the chart's new release, and run make golden CHART=FOLDER", name)
			assert.True(t, cluster.KnowsChart(name, version), name)
		}
	}
}

func TestKeys_OfFreeMappingsAreNotListed(t *testing.T) {
	text, err := os.ReadFile(keysFile("cilium"))
	require.NoError(t, err)
	assert.Greater(t, strings.Count(string(text), "\n"), 1000)
	assert.NotContains(t, string(text), "\nnodeSelector.", "its keys are the labels of nodes")
	for _, key := range []string{
		"\nl2announcements.leaseDuration\n", "\nMTU integer\n", "\nhubble.metrics.enabled array,null\n",
		"\nidentityManagementMode string agent,operator,both\n", "\nnodeSelector object\n",
	} {
		assert.Contains(t, string(text), key)
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
	keys := keysOf(t, loaded)
	for option, value := range chart.OwnOptions {
		assert.Contains(t, config, "\n  "+option+":", option)
		assert.Contains(t, keys, "\n"+value, value)
	}
}

// typedOption matches an option in Cilium's reference of a command that is no text. Of a switch, the reference names no type.
var typedOption = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)(?: (duration|u?int\d*|float\d*))? {2,}`)

func TestOptions_OfCiliumHaveTheirTypes(t *testing.T) {
	dir, err := moduleOf(inLab, "github.com/cilium/cilium")
	require.NoError(t, err)
	var lines []string
	for _, command := range []string{"cilium-agent", "cilium-operator-generic"} {
		reference, err := os.ReadFile(filepath.Join(dir, "Documentation", "cmdref", command+".md"))
		require.NoError(t, err)
		for _, option := range typedOption.FindAllStringSubmatch(string(reference), -1) {
			kind := cmp.Or(option[2], "bool")
			if strings.Contains(kind, "int") || strings.Contains(kind, "float") {
				kind = "number"
			}
			lines = append(lines, option[1]+" "+kind+"\n")
		}
	}
	slices.Sort(lines)
	want := strings.Join(slices.Compact(lines), "")
	assert.Greater(t, strings.Count(want, "\n"), 300)
	golden.File(t, "../../components/cilium/chart/options.txt", want)
}
