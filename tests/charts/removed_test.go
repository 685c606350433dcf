package charts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// usedByMinor returns the values that the templates of a chart of each minor release use, by the release.
func usedByMinor(t *testing.T, versions ...string) map[string]map[string]bool {
	t.Helper()
	used := map[string]map[string]bool{}
	for _, version := range versions {
		loaded, err := chartOf(version)
		require.NoError(t, err, version)
		values := map[string]bool{}
		for _, template := range loaded.Templates {
			for _, found := range usedValue.FindAllSubmatch(template.Data, -1) {
				values[strings.TrimPrefix(string(found[1]), ".")] = true
			}
		}
		used[semver.MajorMinor("v"+version)] = values
	}
	return used
}

func TestRemovedValues_AreUsedByNoChartSinceTheirRemoval(t *testing.T) {
	used := usedByMinor(t, append([]string{"1.17.13"}, versions...)...)
	require.True(t, used["v1.18"]["nodePort.enabled"], "it is removed in 1.19")
	require.True(t, used["v1.19"]["clustermesh.apiserver.tls.enableSecrets"], "it is removed in 1.20")
	looked := 0
	for _, value := range chart.RemovedValues {
		for minor, values := range used {
			if semver.Compare(minor, fmt.Sprintf("v1.%d", value.Since)) < 0 {
				continue
			}
			looked++
			for path := range values {
				assert.False(t, path == value.Path || strings.HasPrefix(path, value.Path+"."), "a template of %s uses %s", minor, path)
			}
		}
	}
	assert.Greater(t, looked, len(chart.RemovedValues))
}
