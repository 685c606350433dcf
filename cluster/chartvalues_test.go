package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestChartValues_AreMergedBesideSlipwaysOwn(t *testing.T) {
	own := map[string]any{"a": map[string]any{"on": true, "list": []int{1}}, "b": 1}
	merged, err := cluster.ChartValues(`{"a":{"more":2},"c":{"d":"x"}}`).MergedInto(own)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"a": map[string]any{"on": true, "list": []any{1.0}, "more": 2.0}, "b": 1.0, "c": map[string]any{"d": "x"},
	}, merged)
	merged, err = cluster.ChartValues(nil).MergedInto(nil)
	require.NoError(t, err)
	assert.Empty(t, merged)
}

func TestChartValues_MustNotTouchWhatSlipwaySets(t *testing.T) {
	own := map[string]any{"a": map[string]any{"on": true, "list": []int{1}}, "b": 1}
	given := cluster.ChartValues(`{"a":{"list":[2],"on":{"x":1},"new":1},"b":null,"c":1}`)
	assert.Equal(t, []string{"a.list", "a.on", "b"}, given.Conflicts(own))
	_, err := given.MergedInto(own)
	assert.EqualError(t, err, "a.list: is set by Slipway; remove it")
	assert.Equal(t, []string{"a"}, cluster.ChartValues(`{"a":false}`).Conflicts(own), "the whole section")
}
