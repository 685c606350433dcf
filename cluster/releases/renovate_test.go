package releases_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster/releases"
	"github.com/slipway-platform/slipway/tests/golden"
)

// packages are Renovate's names of what the projects release, of which one refuses releases of another.
var packages = map[string]string{
	releases.Talos.Name: "siderolabs/talos", releases.Kubernetes.Name: "kubernetes/kubernetes",
	releases.Cilium.Name: "cilium", releases.GatewayAPI.Name: "kubernetes-sigs/gateway-api",
	releases.FluxOperator.Name: "ghcr.io/controlplaneio-fluxcd/charts/flux-operator", releases.Flux.Name: "fluxcd/flux2",
}

// rules are what renovate.json says of packages: the last rule that matches a package decides.
type rules []struct {
	MatchManagers, MatchUpdateTypes, MatchPackageNames []string
	GroupName, AllowedVersions                         string
}

func readRules(t *testing.T) rules {
	t.Helper()
	text, err := os.ReadFile("../../renovate.json")
	require.NoError(t, err)
	var file struct{ PackageRules rules }
	require.NoError(t, json.Unmarshal(text, &file))
	return file.PackageRules
}

// of returns a package's group, and which of its versions are proposed.
func (r rules) of(name string) (group, allowed string) {
	for _, rule := range r {
		if len(rule.MatchManagers)+len(rule.MatchUpdateTypes) > 0 {
			continue
		}
		for _, pattern := range rule.MatchPackageNames {
			if pattern != name && !(strings.HasPrefix(pattern, "/") && regexp.MustCompile(strings.Trim(pattern, "/")).MatchString(name)) {
				continue
			}
			if rule.GroupName != "" {
				group = rule.GroupName
			}
			if rule.AllowedVersions != "" {
				allowed = rule.AllowedVersions
			}
		}
	}
	return group, allowed
}

// before returns the versions before the next minor release, as Renovate reads them.
func before(t *testing.T, minor string) string {
	t.Helper()
	var major, number int
	_, err := fmt.Sscanf(minor, "%d.%d", &major, &number)
	require.NoError(t, err)
	return fmt.Sprintf("<%d.%d.0", major, number+1)
}

// writeAllowed writes which versions of a package are proposed into renovate.json.
func writeAllowed(t *testing.T, name, allowed string) {
	t.Helper()
	text, err := os.ReadFile("../../renovate.json")
	require.NoError(t, err)
	limit := regexp.MustCompile(`("` + regexp.QuoteMeta(name) + `"\s*\],\s*"allowedVersions": ")[^"]*`)
	require.Len(t, limit.FindAll(text, -1), 1, name)
	require.NoError(t, os.WriteFile("../../renovate.json", limit.ReplaceAll(text, []byte("${1}"+allowed)), 0o600))
}

// A release that is newer than the table may not go with the others: config-check would refuse the change, or could not tell. The limits
// are written by -update.
func TestRenovate_ProposesTheNewestReleasesThatGoTogetherInOneChange(t *testing.T) {
	if *golden.Update {
		for _, project := range releases.All {
			for _, fit := range project.Minors[len(project.Minors)-1].With {
				if fit.Refused {
					writeAllowed(t, packages[project.Name], before(t, project.Newest()))
					writeAllowed(t, packages[fit.Project], before(t, fit.Until))
				}
			}
		}
	}
	rules, pairs := readRules(t), 0
	for _, project := range releases.All {
		for _, fit := range project.Minors[len(project.Minors)-1].With {
			if !fit.Refused {
				continue
			}
			pairs++
			group, allowed := rules.of(packages[project.Name])
			otherGroup, otherAllowed := rules.of(packages[fit.Project])
			assert.Equal(t, before(t, project.Newest()), allowed, "renovate.json: allowedVersions of %s", packages[project.Name])
			assert.Equal(t, before(t, fit.Until), otherAllowed, "renovate.json: allowedVersions of %s, with %s %s", packages[fit.Project],
				project.Name, project.Newest())
			assert.NotEmpty(t, group)
			assert.Equal(t, group, otherGroup, "renovate.json: groups of %s and %s", project.Name, fit.Project)
		}
	}
	assert.Equal(t, 3, pairs)
}

// Renovate changes what it finds: a version of a stack file that stayed behind would be refused.
func TestRenovate_FindsEachOfThemInStackFiles(t *testing.T) {
	text, err := os.ReadFile("../../renovate.json")
	require.NoError(t, err)
	var file struct {
		CustomManagers []struct {
			ManagerFilePatterns, MatchStrings []string
			DepNameTemplate                   string
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	const stack = `config:
  slipway:talos:
    version: v1.12.7
  slipway:kubernetes:
    version: v1.35.8
  slipway:cilium:
    version: 1.18.7
    gatewayAPI: true
  slipway:crds:
    rook:
      version: v1.20.6
    gatewayAPI:
      version: v1.3.0
`
	want := map[string]string{
		"siderolabs/talos": "v1.12.7", "kubernetes/kubernetes": "v1.35.8", "cilium": "1.18.7", "kubernetes-sigs/gateway-api": "v1.3.0",
	}
	found := map[string]string{}
	for _, manager := range file.CustomManagers {
		files := regexp.MustCompile(strings.Trim(manager.ManagerFilePatterns[0], "/"))
		if manager.DepNameTemplate == "" || !files.MatchString("Pulumi.infra.yaml") {
			continue
		}
		for _, pattern := range manager.MatchStrings {
			for _, match := range regexp.MustCompile(strings.ReplaceAll(pattern, "(?<", "(?P<")).FindAllStringSubmatch(stack, -1) {
				found[manager.DepNameTemplate] = match[1]
			}
		}
	}
	assert.Equal(t, want, found)
}

// ofThePreset are the paths that config:recommended ignores, unless a renovate.json has ignorePaths of its own.
var ofThePreset = []string{
	"**/node_modules/**", "**/bower_components/**", "**/vendor/**", "**/examples/**", "**/__tests__/**", "**/test/**", "**/tests/**",
	"**/__fixtures__/**",
}

// tracked are the files of this repository: a pipeline's folder has modules of others, too.
func tracked(t *testing.T) []string {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z").Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
}

func TestRenovate_IgnoresNothingThatItShallUpdate(t *testing.T) {
	text, err := os.ReadFile("../../renovate.json")
	require.NoError(t, err)
	var file struct {
		IgnorePaths    []string
		CustomManagers []struct{ ManagerFilePatterns []string }
	}
	require.NoError(t, json.Unmarshal(text, &file))
	if file.IgnorePaths == nil {
		file.IgnorePaths = ofThePreset
	}
	found := []*regexp.Regexp{regexp.MustCompile(`(^|/)go\.mod$`)}
	for _, manager := range file.CustomManagers {
		for _, pattern := range manager.ManagerFilePatterns {
			found = append(found, regexp.MustCompile(strings.Trim(pattern, "/")))
		}
	}
	for _, pattern := range file.IgnorePaths {
		require.Regexp(t, `^\*\*/\w+/\*\*$`, pattern, "a form that this test knows")
	}
	ignored := func(name string) bool {
		return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(folder string) bool {
			return slices.Contains(file.IgnorePaths, "**/"+folder+"/**")
		})
	}
	assert.True(t, ignored("lab/vendor/go.mod"))
	looked := 0
	for _, name := range tracked(t) {
		if slices.ContainsFunc(found, func(one *regexp.Regexp) bool { return one.MatchString(name) }) {
			looked++
			assert.False(t, ignored(name), name)
		}
	}
	assert.Greater(t, looked, 500)
}

var (
	replacement = regexp.MustCompile(`(?m)^.*=> \..*$`)
	// forRenovate is what Renovate takes for a replacement by a folder, in lib/modules/manager/gomod/package-tree.ts.
	forRenovate = regexp.MustCompile(`^[^\S\n]*(?:replace[^\S\n]+)?[^\s/]\S*(?:[^\S\n]+\S+)?[^\S\n]+=>[^\S\n]+\.{1,2}/\S+`)
)

// An update of a module changes the indirect requirements of the modules that name its folder: without them, Go would not build these.
func TestRenovate_TidiesTheModulesThatNameAFolder(t *testing.T) {
	text, err := os.ReadFile("../../renovate.json")
	require.NoError(t, err)
	var file struct{ PostUpdateOptions []string }
	require.NoError(t, json.Unmarshal(text, &file))
	assert.Equal(t, []string{"gomodTidyAll"}, file.PostUpdateOptions)
	looked := 0
	for _, name := range tracked(t) {
		if path.Base(name) != "go.mod" {
			continue
		}
		text, err := os.ReadFile("../../" + name)
		require.NoError(t, err)
		for _, line := range replacement.FindAllString(string(text), -1) {
			looked++
			assert.Regexp(t, forRenovate, line, name)
		}
	}
	assert.Greater(t, looked, 3)
}
