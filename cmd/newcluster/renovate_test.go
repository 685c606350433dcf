package newcluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
)

// ignored reports whether a renovate.json keeps Renovate from a file. A path is that of a file, or of a folder with /** behind it.
func ignored(t *testing.T, config, file string) bool {
	t.Helper()
	var read struct{ IgnorePaths []string }
	require.NoError(t, json.Unmarshal([]byte(config), &read))
	return slices.ContainsFunc(read.IgnorePaths, func(path string) bool {
		folder, is := strings.CutSuffix(path, "**")
		return is && strings.HasPrefix(file, folder) || path == file
	})
}

// A version that Renovate changes there would be a change of the user's, which `slipway manifests` keeps for ever.
func TestTemplate_RenovateIgnoresWhatTheCommandWritesAndNothingElse(t *testing.T) {
	ours, err := ofAreas(areaNames()...)
	require.NoError(t, err)
	require.NoError(t, addApplications(ours, areaNames()))
	require.Greater(t, len(ours), 100)
	code, folder, problems := newRepository(t, "home", "--domain", "home.example.com")
	require.Equal(t, command.Done, code, problems)
	made := files(t, folder)
	config := made["renovate.json"]
	for name := range ours {
		assert.True(t, ignored(t, config, name), name)
	}
	assert.True(t, ignored(t, config, tree.WrittenFile))
	maps.DeleteFunc(made, func(name, _ string) bool { return ours[name] != "" || name == tree.WrittenFile })
	require.Contains(t, made, "kubernetes/apps/podinfo/route.yaml")
	for name := range made {
		assert.False(t, ignored(t, config, name), name)
	}
}

// Default versions skip no minor release if Slipway skips none.
func TestTemplate_RenovateProposesEachMinorReleaseOfSlipway(t *testing.T) {
	code, folder, problems := newRepository(t, "home", "--domain", "")
	require.Equal(t, command.Done, code, problems)
	made := files(t, folder)
	var read struct {
		PackageRules []struct {
			MatchPackageNames     []string
			SeparateMultipleMinor bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(made["renovate.json"]), &read))
	require.Len(t, read.PackageRules, 1)
	rule := read.PackageRules[0]
	assert.True(t, rule.SeparateMultipleMinor)
	require.Len(t, rule.MatchPackageNames, 1)
	assert.Contains(t, made["go.mod"], "\nrequire "+rule.MatchPackageNames[0]+" v")
}
