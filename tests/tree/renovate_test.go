package tree

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// renovate is the part of a renovate.json that says which versions below kubernetes/ and in the pipelines Renovate finds.
type renovate struct {
	Flux, Kubernetes struct{ ManagerFilePatterns []string }
	CustomManagers   []struct{ ManagerFilePatterns, MatchStrings []string }
	PackageRules     []struct {
		GroupName                           string
		MatchPackageNames, MatchUpdateTypes []string
		Enabled                             *bool
	}
}

// ours is the renovate.json of this repository, ofTemplate that of a repository that Slipway writes.
const (
	ours       = "renovate.json"
	ofTemplate = "templates/cluster/renovate.json"
)

func readRenovate(t *testing.T, name string) (r renovate) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// pins are the lines that hold a version, and which of Renovate's managers reads such a line: Flux's one reads charts, artifacts and the
// images in values; Kubernetes' one reads the images of pods. Others need a comment.
var (
	fluxPin  = regexp.MustCompile(`(?m)^\s+(?:version|tag): .*\d+\.\d+`)
	imagePin = regexp.MustCompile(`(?m)^\s+(?:- )?image: .*:.*\d+\.\d+`)
	otherPin = regexp.MustCompile(`(?m)^\s+(?:- )?(?:imageName|url): .*\d+\.\d+`)
)

// The pipelines: without patterns of ours, Renovate's managers for GitHub's actions and GitLab's images read these files.
var (
	pipelineFile = regexp.MustCompile(`^\.github/(?:workflows|actions)/.+\.yaml$|^\.gitlab-ci\.yml$`)
	pipelinePin  = regexp.MustCompile(`(?m)^[^#\n]*(?:\d+\.\d+\.\d+| uses: |\bimage: ).*$`)
	byDefault    = regexp.MustCompile(`^\s*(?:- )?(?:uses|image): \S+[@:]v?\d+|^\s*- uses: \./`)
)

// unknown lists the pins of a file that Renovate does not find.
func (r renovate) unknown(name, text string) (lines []string) {
	matches := func(patterns []string) bool {
		for _, pattern := range patterns {
			if regexp.MustCompile(strings.Trim(pattern, "/")).MatchString(name) {
				return true
			}
		}
		return false
	}
	flux := strings.Contains(text, "toolkit.fluxcd.io/") && matches(r.Flux.ManagerFilePatterns)
	pins, pipeline := []*regexp.Regexp{fluxPin, imagePin, otherPin}, pipelineFile.MatchString(name)
	if pipeline {
		pins = []*regexp.Regexp{pipelinePin}
	}
	known := func(line string) bool {
		if fluxPin.MatchString(line) && flux || imagePin.MatchString(line) && matches(r.Kubernetes.ManagerFilePatterns) ||
			pipeline && byDefault.MatchString(line) {
			return true
		}
		for _, custom := range r.CustomManagers {
			for _, pattern := range custom.MatchStrings {
				for _, match := range regexp.MustCompile(strings.ReplaceAll(pattern, "(?<", "(?P<")).FindAllString(text, -1) {
					if matches(custom.ManagerFilePatterns) && strings.Contains(match, strings.TrimSpace(line)) {
						return true
					}
				}
			}
		}
		return false
	}
	for _, pin := range pins {
		for _, line := range pin.FindAllString(text, -1) {
			if !known(line) {
				lines = append(lines, name+": "+strings.TrimSpace(line))
			}
		}
	}
	return lines
}

func TestRenovate_FindsEachVersionOfTheTree(t *testing.T) {
	r, found := readRenovate(t, ours), 0
	require.NoError(t, filepath.WalkDir(filepath.Join(repository, "kubernetes"), func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		below, err := filepath.Rel(repository, name)
		assert.Empty(t, r.unknown(filepath.ToSlash(below), string(text)))
		found += len(fluxPin.FindAll(text, -1)) + len(imagePin.FindAll(text, -1))
		return err
	}))
	assert.Positive(t, found)
}

func TestRenovate_FindsEachVersionOfThePipelines(t *testing.T) {
	r, found := readRenovate(t, ours), 0
	for _, pattern := range []string{".github/workflows/*.yaml", ".github/actions/*/*.yaml", ".gitlab-ci.yml"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			below, err := filepath.Rel(repository, file)
			require.NoError(t, err)
			assert.Empty(t, r.unknown(filepath.ToSlash(below), string(text)))
			found += len(pipelinePin.FindAll(text, -1))
		}
	}
	assert.Greater(t, found, 20)
	assert.Len(t, r.unknown(".gitlab-ci.yml", "job:\n  image: golang:1.26\n  variables:\n    TOOL: 1.2.3\n"), 1)
}

// The folder kubernetes/apps and podinfo's Kustomization are the user's, too, if his repository has a gateway. Versions in go.mod need no
// pattern.
func TestRenovate_FindsEachVersionOfARepositoryThatSlipwayWrites(t *testing.T) {
	r, found := readRenovate(t, ofTemplate), 0
	const template = "templates/cluster"
	for _, root := range []string{template, "kubernetes/apps/podinfo", "kubernetes/clusters/apps/workloads/podinfo.yaml"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, root), func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			below, err := filepath.Rel(repository, name)
			below = strings.TrimPrefix(filepath.ToSlash(below), template+"/")
			assert.Empty(t, r.unknown(below, string(text)))
			if pipelineFile.MatchString(below) {
				found += len(pipelinePin.FindAll(text, -1))
			}
			found += len(fluxPin.FindAll(text, -1))
			return err
		}))
	}
	assert.Greater(t, found, 5)
}

func TestRenovate_AVersionThatNobodyReadsIsReported(t *testing.T) {
	r := readRenovate(t, ours)
	for text, problems := range map[string]int{
		"apiVersion: helm.toolkit.fluxcd.io/v2\nspec:\n  version: 1.2.3\n":                                                  0,
		"spec:\n  version: 1.2.3\n":                                                                                         1,
		"spec:\n  - image: ghcr.io/example/web:6.9.0\n":                                                                     0,
		"spec:\n  imageName: ghcr.io/example/postgresql:18.4-system-trixie\n":                                               0,
		"spec:\n  url: https://example.com/v1.2.3/file.yaml\n":                                                              1,
		"spec:\n  # renovate: datasource=github-tags depName=example/web\n  url: https://example.com/v1.2.3/dashboard.json": 0,
	} {
		assert.Len(t, r.unknown("kubernetes/apps/web/web.yaml", text), problems, text)
	}
	assert.Len(t, r.unknown("elsewhere/web.yaml", "spec:\n  - image: ghcr.io/example/web:6.9.0\n"), 1)
}

// A newer Ceph with an older Rook cannot be mounted, and the drivers are those that Rook contains.
func TestRenovate_ProposesRookAndCephAndTheDriversTogether(t *testing.T) {
	names, held := []string{}, []string{}
	for _, rule := range readRenovate(t, ours).PackageRules {
		if rule.GroupName == "storage" {
			names = append(names, rule.MatchPackageNames...)
		}
		if rule.Enabled != nil && !*rule.Enabled && slices.Contains(rule.MatchUpdateTypes, "major") {
			held = append(held, rule.MatchPackageNames...)
		}
	}
	assert.ElementsMatch(t, []string{
		"rook/rook", "rook-ceph", "github.com/rook/rook", "quay.io/ceph/ceph", "ceph/ceph-csi-operator", "ceph-csi-drivers",
		"github.com/ceph/ceph-csi-operator",
	}, names)
	assert.Contains(t, held, "quay.io/ceph/ceph", "Ceph's major releases follow Rook's guide, not a bot")
}
