package chart

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/releases"
)

// chartKeys are the keys of the chart's values, one path a line, after a line with the chart's version. A key
// without keys below it may have any. A test writes the file from the real chart.
//
//go:embed chartkeys.txt
var chartKeys string

// knownRelease reports whether the file lists the keys of the chart's minor release.
func knownRelease(version string) bool {
	of, _, _ := strings.Cut(chartKeys, "\n")
	return releases.MinorOf(version) == releases.MinorOf(of)
}

// knownKeys returns the known keys below each path; none for a path that may have any.
func knownKeys() map[string][]string {
	below := map[string][]string{}
	_, lines, _ := strings.Cut(chartKeys, "\n")
	for line := range strings.Lines(lines) {
		path := strings.TrimSpace(line)
		for path != "" {
			parent := path[:max(strings.LastIndex(path, "."), 0)]
			key := strings.TrimPrefix(path[len(parent):], ".")
			if !slices.Contains(below[parent], key) {
				below[parent] = append(below[parent], key)
			}
			path = parent
		}
	}
	return below
}

// unknownKeys adds a problem for each key that the chart does not know.
func unknownKeys(findings *cluster.Findings, path, at string, given map[string]any) {
	if len(given) == 0 {
		return
	}
	unknownBelow(findings, knownKeys(), path, at, given)
}

func unknownBelow(findings *cluster.Findings, known map[string][]string, path, at string, given map[string]any) {
	names := known[at]
	if len(names) == 0 {
		return // the chart has a mapping of any keys there, or no mapping
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, key) {
			remedy := "remove it"
			if meant := cluster.Suggest(key, names); meant != "" {
				remedy = "did you mean " + meant + "?"
			}
			findings.Found(cluster.KeyPath(path, key), remedy, "is no value of Cilium's chart")
			continue
		}
		if below, is := given[key].(map[string]any); is {
			unknownBelow(findings, known, cluster.KeyPath(path, key), cluster.KeyPath(at, key), below)
		}
	}
}
