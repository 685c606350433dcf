package charts

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schema is the part of the chart's JSON schema that knows words. The schema itself lets unknown ones pass.
type schema struct {
	Properties map[string]schema `json:"properties"`
}

// commented are words that the chart's templates read, but that neither its schema nor its values have: they stand there
// as comments. What they do is asserted on the rendered manifests.
var commented = map[string]bool{"socketLB.hostNamespaceOnly": true}

// unknown lists the paths of a tree of values that the chart does not have. An object that the chart says nothing more
// about is free in form.
func (s schema) unknown(tree map[string]any, at string) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		path := at + key
		known, ok := s.Properties[key]
		if !ok && !commented[path] {
			paths = append(paths, path)
		}
		if below, isTree := tree[key].(map[string]any); isTree && len(known.Properties) != 0 {
			paths = append(paths, known.unknown(below, path+".")...)
		}
	}
	return paths
}

func TestValues_UseOnlyWordsThatTheChartKnows(t *testing.T) {
	for _, v := range everyMinor() {
		chart, err := chartOf(v.version)
		require.NoError(t, err)
		var known schema
		require.NoError(t, json.Unmarshal(chart.Schema, &known))
		require.Greater(t, len(known.Properties), 100)
		tree, err := complete(v.values())
		require.NoError(t, err, v)
		unknown := known.unknown(tree, "")
		if slices.Contains(unknown, forEarlierCharts) {
			assert.Equal(t, "1.20.2", v.version, "a chart that makes Secrets knows %s", forEarlierCharts)
		}
		assert.Subset(t, []string{forEarlierCharts}, unknown, v)
	}
}

// forEarlierCharts is a value for charts before 1.20. Flux may still have one of them when it gets the values of the next.
const forEarlierCharts = "clustermesh.apiserver.tls.enableSecrets"

func TestValues_AMisspeltWordWouldBeFound(t *testing.T) {
	var known schema
	require.NoError(t, json.Unmarshal(read(t).Schema, &known))
	tree, err := complete(variants[0].values())
	require.NoError(t, err)
	tree["cgroup"].(map[string]any)["automount"] = map[string]any{"enabled": false}
	tree["gatewayApi"] = map[string]any{"enabled": true}
	assert.Equal(t, []string{"cgroup.automount", "gatewayApi"}, known.unknown(tree, ""))
}
