package charts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// usedByMinor returns the values that the templates of the newest chart of each minor release use, by the release.
func usedByMinor(t *testing.T, minors ...string) map[string]map[string]bool {
	t.Helper()
	folder, err := charts()
	require.NoError(t, err)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	newest := map[string]string{}
	for _, file := range files {
		version := "v" + strings.TrimPrefix(strings.TrimSuffix(file.Name(), filepath.Ext(file.Name())), "cilium-")
		minor := semver.MajorMinor(version)
		if semver.IsValid(version) && semver.Prerelease(version) == "" && semver.Compare(version, newest[minor]) > 0 {
			newest[minor] = version
		}
	}
	used := map[string]map[string]bool{}
	for _, minor := range minors {
		raw, err := archiveOf(strings.TrimPrefix(newest[minor], "v"))
		require.NoError(t, err, minor)
		loaded, err := loader.LoadArchive(bytes.NewReader(raw))
		require.NoError(t, err, minor)
		used[minor] = map[string]bool{}
		for _, template := range loaded.Templates {
			for _, found := range usedValue.FindAllSubmatch(template.Data, -1) {
				used[minor][strings.TrimPrefix(string(found[1]), ".")] = true
			}
		}
	}
	return used
}

func TestRemovedValues_AreUsedByNoChartSinceTheirRemoval(t *testing.T) {
	used := usedByMinor(t, "v1.17", "v1.18", "v1.19")
	require.True(t, used["v1.18"]["nodePort.enabled"], "it is removed in 1.19")
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
