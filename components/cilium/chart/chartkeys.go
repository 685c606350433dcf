package chart

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/releases"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// chartKeys are the keys of the chart's values, one a line, after a line with the chart's version: a path, its kinds in the chart's schema,
// and the words that the schema allows. A key without keys below it may have any. A test writes the file from the real chart.
//
//go:embed chartkeys.txt
var chartKeys string

// knownRelease reports whether the file lists the keys of the chart's minor release.
func knownRelease(version string) bool {
	of, _, _ := strings.Cut(chartKeys, "\n")
	return releases.MinorOf(version) == releases.MinorOf(of)
}

// chartKey is what the chart knows of one key.
type chartKey struct {
	below []string // known keys below it; none if it may have any
	kinds []string // in JSON Schema's words; none if the schema has none
	words []string // allowed texts; none if any is
}

// knownKeys returns the known keys by their paths. The chart itself has the path "".
var knownKeys = sync.OnceValue(func() map[string]*chartKey {
	known := map[string]*chartKey{"": {}}
	_, lines, _ := strings.Cut(chartKeys, "\n")
	for line := range strings.Lines(lines) {
		path, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kinds, words, _ := strings.Cut(rest, " ")
		known[path] = &chartKey{kinds: list(kinds), words: list(words)}
		parent := path[:max(strings.LastIndex(path, "."), 0)] // which is in a line before
		known[parent].below = append(known[parent].below, strings.TrimPrefix(path[len(parent):], "."))
	}
	for path, words := range agentWords {
		known[path].words = words
	}
	return known
})

// list returns the items of a text with commas; none of an empty text.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// checkKeys adds a problem for each key that the chart does not know, and for each value of which its schema takes another kind. at is the
// path in the chart.
func checkKeys(findings *cluster.Findings, path, at string, given map[string]any) {
	names := knownKeys()[at].below
	if len(names) == 0 {
		return // the chart has a mapping of any keys there, or no mapping
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		here, there := cluster.KeyPath(path, key), strings.TrimPrefix(at+"."+key, ".")
		if !slices.Contains(names, key) {
			remedy := "remove it"
			if meant := cluster.Suggest(key, names); meant != "" {
				remedy = "did you mean " + meant + "?"
			}
			findings.Found(here, remedy, "is no value of Cilium's chart")
			continue
		}
		if !knownKeys()[there].takes(given[key]) {
			findings.Found(here, "write "+knownKeys()[there].wanted(), "%s, which Cilium's chart does not take", shown(given[key]))
			continue
		}
		if below, is := given[key].(map[string]any); is {
			checkKeys(findings, here, there, below)
		}
	}
}

// takes reports whether the schema takes a value. Helm removes a key whose value is null.
func (k chartKey) takes(value any) bool {
	text, isText := value.(string)
	if value == nil {
		return true
	}
	fits := slices.ContainsFunc(kindsOf(value), func(kind string) bool { return slices.Contains(k.kinds, kind) })
	return (fits || len(k.kinds) == 0) && (!isText || len(k.words) == 0 || slices.Contains(k.words, strings.ToLower(text)))
}

// wanted describes what the schema takes.
func (k chartKey) wanted() string {
	if len(k.words) > 0 {
		return strings.Join(slices.DeleteFunc(slices.Clone(k.words), func(word string) bool { return word == "" }), " or ")
	}
	var names []string
	for _, kind := range k.kinds {
		if kind != "null" {
			names = append(names, map[string]string{
				"boolean": "true or false, without quotes", "integer": "a whole number, without quotes", "number": "a number, without quotes",
				"string": "a text, in quotes", "array": "a list", "object": "a mapping",
			}[kind])
		}
	}
	return strings.Join(names, ", or ")
}

// kindsOf returns the kinds of JSON Schema that a value has.
func kindsOf(value any) []string {
	switch value := value.(type) {
	case bool:
		return []string{"boolean"}
	case float64:
		if value == float64(int64(value)) {
			return []string{"integer", "number"}
		}
		return []string{"number"}
	case string:
		return []string{"string"}
	case []any:
		return []string{"array"}
	}
	return []string{"object"}
}

// shown returns a value with its kind, as a message may show it.
func shown(value any) string {
	switch kind := kindsOf(value)[0]; kind {
	case "array":
		return "is a list"
	case "object":
		return "is a mapping"
	case "string":
		return syntax.Shown(syntax.Form{}, value.(string)) + " is text"
	default:
		return fmt.Sprintf("%v is a %s", value, strings.Replace(kind, "integer", "number", 1))
	}
}
