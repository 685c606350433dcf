package cluster

import (
	"embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/cluster/releases"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// chartKeyFiles have the keys of charts' values, a file for each chart, one key a line, after a line with the chart's version: a path, its
// kinds, the words that the chart's schema allows, and of some the default after a =. A key without keys below it may have any. A test
// writes the files from the real charts.
//
//go:embed chartkeys/*.txt
var chartKeyFiles embed.FS

// chartKeys are the keys of a release of a chart by their paths. The chart itself has the path "".
type chartKeys struct {
	chart, version string
	keys           map[string]*chartKey
}

// chartKey is what the chart knows of one key.
type chartKey struct {
	below []string // known keys below it; none if it may have any
	kinds []string // in JSON Schema's words, numeral and duration; none if any is allowed
	words []string // allowed texts; none if any is
	usual string   // the default of a number that others depend on; "" of all others
}

// numeral is a number, or a text that is one: what a template takes that writes the value without quotes. duration is one with its unit, or
// an empty text.
const (
	numeral  = "numeral"
	duration = "duration"
)

// charts are the known charts by their names.
var charts = sync.OnceValue(func() map[string]chartKeys {
	known := map[string]chartKeys{}
	files, _ := chartKeyFiles.ReadDir("chartkeys")
	for _, file := range files {
		text, _ := chartKeyFiles.ReadFile("chartkeys/" + file.Name())
		version, lines, _ := strings.Cut(string(text), "\n")
		name := strings.TrimSuffix(file.Name(), ".txt")
		known[name] = chartKeys{name, version, readChartKeys(lines)}
	}
	return known
})

func readChartKeys(lines string) map[string]*chartKey {
	known := map[string]*chartKey{"": {}}
	for line := range strings.Lines(lines) {
		line, usual, _ := strings.Cut(strings.TrimSpace(line), " =")
		path, rest, _ := strings.Cut(line, " ")
		kinds, words, _ := strings.Cut(rest, " ")
		known[path] = &chartKey{kinds: list(kinds), words: list(words), usual: usual}
		parent := path[:max(strings.LastIndex(path, "."), 0)] // which is in a line before
		known[parent].below = append(known[parent].below, strings.TrimPrefix(path[len(parent):], "."))
	}
	return known
}

// list returns the items of a text with commas; none of an empty text.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// KnowsChart reports whether the keys of the chart's minor release are known.
func KnowsChart(chart, version string) bool {
	known, is := charts()[chart]
	return is && releases.MinorOf(version) == releases.MinorOf(known.version)
}

// CheckChartKeys adds a problem for each key that a release of a chart does not know, and for each value of which it takes another kind. It
// adds none for a minor release whose keys are not known.
func CheckChartKeys(path, chart, version string, given map[string]any, findings *Findings) {
	if KnowsChart(chart, version) {
		charts()[chart].check(findings, path, "", given)
	}
}

// check checks the keys of a mapping. at is its path in the chart.
func (c chartKeys) check(findings *Findings, path, at string, given map[string]any) {
	names := c.keys[at].below
	if len(names) == 0 {
		return // the chart has a mapping of any keys there, or no mapping
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		here, there := KeyPath(path, key), strings.TrimPrefix(at+"."+key, ".")
		if !slices.Contains(names, key) {
			if inKubernetes(at, key) || here == path+".global" { // which Helm gives to all charts
				continue
			}
			findings.Found(here, MeantOr("remove it", key, names), "is no value of the chart %s", c.chart)
			continue
		}
		if !c.keys[there].takes(given[key]) {
			findings.Unreadable(here, "write "+c.keys[there].wanted(), "%s, which the chart %s does not expect", ShownKind(given[key]), c.chart)
			continue
		}
		if below, is := given[key].(map[string]any); is && podTypes[lastOf(at)] == nil { // below those of Kubernetes are its own
			c.check(findings, here, there, below)
		}
	}
}

// lastOf returns the last key of a path in a chart's values.
func lastOf(at string) string { return at[strings.LastIndex(at, ".")+1:] }

// inKubernetes reports whether a key below a path of a chart's values is one that Kubernetes has there: charts write such mappings as they
// are, beside their own keys.
func inKubernetes(at, key string) bool {
	name := lastOf(at)
	kind, is := podTypes[name]
	if textMaps.MatchString(name) || !is || kind.Kind() != reflect.Struct {
		return textMaps.MatchString(name)
	}
	_, has := jsonFields(kind)[key]
	if !has && kind == podTypes["securityContext"] {
		_, has = jsonFields(podTypes["podSecurityContext"])[key]
	}
	return has
}

// takes reports whether the chart takes a value. Helm removes a key whose value is null.
func (k chartKey) takes(value any) bool {
	text, isText := value.(string)
	if value == nil {
		return true
	}
	fits := slices.ContainsFunc(kindsOf(value), func(kind string) bool { return slices.Contains(k.kinds, kind) })
	return (fits || len(k.kinds) == 0) && (!isText || len(k.words) == 0 || slices.Contains(k.words, text))
}

// wanted describes what the chart takes.
func (k chartKey) wanted() string {
	if len(k.words) > 0 {
		return strings.Join(k.words, " or ")
	}
	var names []string
	for _, kind := range k.kinds {
		if kind != "null" {
			names = append(names, map[string]string{
				"boolean": "true or false, without quotes", "integer": "a whole number, without quotes", "number": "a number, without quotes",
				"string": "a text, in quotes", "array": "a list", "object": "a mapping", numeral: "a number",
				duration: "a duration with its unit, such as 30s",
			}[kind])
		}
	}
	return strings.Join(names, ", or ")
}

// kindsOf returns the kinds that a value has.
func kindsOf(value any) []string {
	switch value := value.(type) {
	case bool:
		return []string{"boolean"}
	case float64:
		if value == float64(int64(value)) {
			return []string{"integer", "number", numeral}
		}
		return []string{"number", numeral}
	case string:
		kinds := []string{"string"}
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			kinds = append(kinds, numeral)
		}
		if _, err := time.ParseDuration(value); err == nil || value == "" {
			kinds = append(kinds, duration)
		}
		return kinds
	case []any:
		return []string{"array"}
	}
	return []string{"object"}
}

// ShownKind returns a value with its kind, as a message may show it.
func ShownKind(value any) string {
	switch kind := kindsOf(value)[0]; kind {
	case "array":
		return "is a list"
	case "object":
		return "is a mapping"
	case "string":
		text := syntax.ShownText(value.(string))
		if text == value { // the quotes are what makes it text
			text = strconv.Quote(text)
		}
		return text + " is text"
	default:
		return fmt.Sprintf("%v is a %s", value, strings.Replace(kind, "integer", "number", 1))
	}
}
