package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestChartKeys_HaveWhatSlipwaySets(t *testing.T) {
	c, known := clusters.Infra(t), 0
	for _, service := range append(c.Services(), c.Providers.Services()...) {
		own, err := cluster.ChartValues(nil).MergedInto(service.Values)
		require.NoError(t, err)
		findings := &cluster.Findings{}
		cluster.CheckChartKeys(service.Name, service.Name, service.Version, own, findings)
		assert.Empty(t, findings.All())
		if cluster.KnowsChart(service.Name, service.Version) {
			known++
		}
	}
	assert.Equal(t, 6, known)
}

func TestChartKeys_OfAReleaseThatIsNotKnownRefuseNothing(t *testing.T) {
	findings := &cluster.Findings{}
	cluster.CheckChartKeys("spegel", "spegel", "0.99.0", map[string]any{"quux": 1.0}, findings)
	assert.Empty(t, findings.All())
	cluster.CheckChartKeys("spegel", "spegel", "0.7.0", map[string]any{"quux": 1.0, "global": map[string]any{"a": 1.0}}, findings)
	require.Len(t, findings.All(), 1)
	assert.EqualError(t, findings.All()[0], "spegel.quux: is no value of the chart spegel; remove it")
}

func TestChartKeys_TakeWhatTemplatesWriteAsItIs(t *testing.T) {
	for given, refused := range map[string]bool{
		`{"terminationGracePeriodSeconds":"30"}`:                               false,
		`{"terminationGracePeriodSeconds":"long"}`:                             true,
		`{"tolerations":null}`:                                                 false,
		`{"securityContext":{"runAsGroup":1,"capabilities":{"drop":["ALL"]}}}`: false,
		`{"hpa":{"behavior":{"scaleDown":{"a":1}}}}`:                           false,
		`{"isClusterService":"true"}`:                                          true,
		`{"priorityClassName":1}`:                                              false,
	} {
		tree, err := cluster.ChartValues(given).Tree()
		require.NoError(t, err)
		findings := &cluster.Findings{}
		cluster.CheckChartKeys("coreDNS.values", "coredns", "1.46.0", tree, findings)
		assert.Equal(t, refused, findings.Len() > 0, given)
	}
}
