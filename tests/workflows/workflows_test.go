// Package workflows holds the tests of what the pipelines in GitHub and GitLab run.
package workflows

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

const repository = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	require.NoError(t, err)
	return string(text)
}

// parse reads a file of YAML into a value.
func parse(t *testing.T, path string, into any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(read(t, path)), into), path)
}

// targets are the targets of the Makefile with their recipes.
func targets(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	name := ""
	for line := range strings.Lines(read(t, "Makefile")) {
		if head := regexp.MustCompile(`^([a-z][a-z0-9-]*):(?:[^=]|$)`).FindStringSubmatch(line); head != nil {
			name = head[1]
			found[name] = ""
		} else if recipe, is := strings.CutPrefix(line, "\t"); is && name != "" {
			found[name] += recipe
		} else {
			name = ""
		}
	}
	require.Greater(t, len(found), 20)
	return found
}

// byHand need Debian 12, QEMU and a machine of their own, which the pipelines' machines are not.
var byHand = []string{"real-talos", "real-talos-control-planes", "record-talos"}

// inPipelines are the targets whose tests need a lab, but for those that are made by hand.
func inPipelines(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(inLab(t), func(name string) bool { return slices.Contains(byHand, name) })
}

// inLab are the targets whose tests need a lab.
func inLab(t *testing.T) []string {
	t.Helper()
	var names []string
	for name, recipe := range targets(t) {
		if strings.Contains(recipe, "$(LAB_TESTS)") {
			names = append(names, name)
		}
	}
	require.Greater(t, len(names), 5)
	return names
}

// step is a step of a job of GitHub.
type step struct {
	Run, Uses string
	With      struct {
		Target        string
		GoVersion     string `yaml:"go-version"`
		GoVersionFile string `yaml:"go-version-file"`
	}
}

// workflow is what the tests read of a workflow of GitHub.
type workflow struct {
	Jobs map[string]struct {
		If       string
		RunsOn   any `yaml:"runs-on"` // a label, a list of labels, or a group
		Strategy struct{ Matrix struct{ Target []string } }
		Steps    []step
	}
}

// ofACopy are the workflows that a copy of this repository may run, with the variable by which its owner asks for them.
var ofACopy = map[string]string{"drift": "DRIFT_STACKS", "preview": "PREVIEW", "preview-comment": "PREVIEW"}

func TestWorkflows_RunInNoCopyOfThisRepositoryUnasked(t *testing.T) {
	const ours = "github.repository == 'slipway-platform/slipway'"
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	require.NoError(t, err)
	require.Greater(t, len(files), len(ofACopy))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		var w workflow
		parse(t, filepath.Join(".github", "workflows", name+".yaml"), &w)
		require.NotEmpty(t, w.Jobs, name)
		for job, is := range w.Jobs {
			switch asked := ofACopy[name]; asked {
			case "":
				assert.Equal(t, ours, is.If, "%s: %s", name, job)
			case "DRIFT_STACKS":
				assert.Equal(t, "vars.DRIFT_STACKS != '' && github.event.repository.private", is.If, "%s: %s", name, job)
			default:
				condition, _, _ := strings.Cut(strings.Trim(is.If, "("), ")")
				assert.Equal(t, ours+" || vars."+asked+" == 'yes'", condition, "%s: %s", name, job)
			}
		}
	}
}

// ofTheTemplate is the workflow of a repository that Slipway writes.
const ofTheTemplate = "templates/cluster/.github/workflows/check.yaml"

// A fork of a public repository can run its code on the runners of that repository, which are in the network of the cluster.
func TestWorkflows_RunOnAnOwnRunnerInAPrivateRepositoryOnly(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	require.NoError(t, err)
	own := 0
	for _, file := range append(files, filepath.Join(repository, ofTheTemplate)) {
		name, err := filepath.Rel(repository, file)
		require.NoError(t, err)
		var w workflow
		parse(t, name, &w)
		for job, is := range w.Jobs {
			require.NotNil(t, is.RunsOn, "%s: %s", name, job)
			if on := fmt.Sprint(is.RunsOn); !strings.Contains(on, "self-hosted") && !strings.Contains(on, "${{") {
				continue
			}
			own++
			assert.NotContains(t, is.If, "||", "%s: %s", name, job)
			assert.Contains(t, strings.Split(is.If, " && "), "github.event.repository.private", "%s: %s", name, job)
		}
	}
	assert.Equal(t, 2, own)
}

// fromTheOwner is a variable or a secret that the owner of a repository sets.
var fromTheOwner = regexp.MustCompile(`\b(?:vars|secrets)\.([A-Z_]+)`)

func TestWorkflows_ADocumentNamesEachVariableAndSecret(t *testing.T) {
	for file, document := range map[string]string{
		".github/workflows/drift.yaml": "docs/drift.md", ".github/workflows/preview.yaml": "docs/preview.md",
		".github/workflows/preview-comment.yaml": "docs/preview.md", ofTheTemplate: "docs/updating.md",
	} {
		set, text := fromTheOwner.FindAllStringSubmatch(read(t, file), -1), read(t, document)
		assert.NotEmpty(t, set, file)
		for _, one := range set {
			assert.True(t, strings.Contains(text, "`"+one[1]+"`"), "%s names no `%s` of %s", document, one[1], file)
		}
	}
}

// Renovate leaves the line of Go in a go.mod without go.sum as it is, but a newer Slipway may need a newer Go. go run does not fetch one
// for a requirement, whatever GOTOOLCHAIN is.
func TestTemplate_ChecksWithTheNewestGo(t *testing.T) {
	var w workflow
	parse(t, ofTheTemplate, &w)
	setups := 0
	for job, is := range w.Jobs {
		for _, one := range is.Steps {
			if strings.HasPrefix(one.Uses, "actions/setup-go@") {
				setups++
				assert.Equal(t, "stable", one.With.GoVersion, job)
				assert.Empty(t, one.With.GoVersionFile, job)
			}
		}
	}
	assert.Equal(t, 2, setups)
}

// A skipped preview has no result, and did not fail.
func TestPreviewComment_SaysNothingOfAPreviewThatWasSkipped(t *testing.T) {
	var w workflow
	parse(t, ".github/workflows/preview-comment.yaml", &w)
	for _, conclusion := range []string{"action_required", "skipped"} {
		assert.Contains(t, w.Jobs["comment"].If, "&& github.event.workflow_run.conclusion != '"+conclusion+"'")
	}
}

// labs returns the targets that a job makes in a lab.
func (w workflow) labs(job string) []string {
	for _, step := range w.Jobs[job].Steps {
		switch {
		case step.Uses != "./.github/actions/lab":
		case step.With.Target == "${{ matrix.target }}":
			return w.Jobs[job].Strategy.Matrix.Target
		default:
			return []string{step.With.Target}
		}
	}
	return nil
}

func TestGitHub_RunsEachTargetThatNeedsALab(t *testing.T) {
	var test, proofs workflow
	parse(t, ".github/workflows/test.yaml", &test)
	parse(t, ".github/workflows/proofs.yaml", &proofs)
	assert.Equal(t, []string{"tools"}, proofs.labs("tools"))
	assert.ElementsMatch(t, inPipelines(t), append(test.labs("lab"), proofs.labs("proof")...))
}

// gitlabJob is what the tests read of a job of GitLab.
type gitlabJob struct {
	Script   []string
	Extends  any // a name, or a list of names
	Rules    []gitlabRule
	Parallel struct {
		Matrix []struct {
			Targets []string `yaml:"TARGET"`
		}
	}
}

type gitlabRule struct{ If, When string }

func (j *gitlabJob) UnmarshalYAML(node *yaml.Node) error {
	type plain gitlabJob
	if node.Kind != yaml.MappingNode {
		return nil
	}
	return node.Decode((*plain)(j))
}

// rulesOf returns the rules of a job: its own, or else those of the last job that it extends and that has any.
func rulesOf(jobs map[string]gitlabJob, name string) []gitlabRule {
	job := jobs[name]
	if job.Rules != nil {
		return job.Rules
	}
	extended, _ := job.Extends.([]any)
	if one, is := job.Extends.(string); is {
		extended = []any{one}
	}
	for _, other := range slices.Backward(extended) {
		if rules := rulesOf(jobs, other.(string)); rules != nil {
			return rules
		}
	}
	return nil
}

// A merge request of a fork has its pipeline in the fork.
func TestGitLab_RunsInNoCopyOfThisRepositoryUnasked(t *testing.T) {
	ours := regexp.MustCompile(`(?:^|&& )\$CI_(?:MERGE_REQUEST_)?PROJECT_PATH == "slipway-platform/slipway"$`)
	asked := map[string]string{
		"preview": `$PREVIEW == "yes"`, "lab": "$LAB_RUNNER", "proofs": "$LAB_RUNNER && $PROOFS", "drift": "$DRIFT_STACKS",
		"platforms": "$PROOFS",
	}
	jobs, looked := map[string]gitlabJob{}, 0
	parse(t, ".gitlab-ci.yml", &jobs)
	for name := range jobs {
		if strings.HasPrefix(name, ".") || name == "workflow" {
			continue
		}
		rules := rulesOf(jobs, name)
		require.NotEmpty(t, rules, name)
		for _, rule := range rules {
			if rule.When == "never" {
				continue
			}
			assert.NotContains(t, rule.If, "||", name)
			byOwner := asked[name] != "" && strings.Contains(rule.If, asked[name])
			assert.True(t, byOwner || ours.MatchString(rule.If), "%s: %s", name, rule.If)
			looked++
		}
	}
	assert.Greater(t, looked, 5)
}

func TestGitLab_RunsEachTargetThatNeedsALab(t *testing.T) {
	jobs := map[string]gitlabJob{}
	parse(t, ".gitlab-ci.yml", &jobs)
	assert.Equal(t, []string{"make e2e"}, jobs["lab"].Script)
	assert.Equal(t, []string{`make "$TARGET"`}, jobs["proofs"].Script)
	require.Len(t, jobs["proofs"].Parallel.Matrix, 1)
	assert.ElementsMatch(t, inPipelines(t), append([]string{"e2e"}, jobs["proofs"].Parallel.Matrix[0].Targets...))
}

func TestPipelines_CompileForEachPlatformOfAReleaseBeforeTheTag(t *testing.T) {
	assert.Contains(t, targets(t)["platforms"], "go run ./cmd/release compile\n")
	var proofs workflow
	parse(t, ".github/workflows/proofs.yaml", &proofs)
	assert.True(t, slices.ContainsFunc(proofs.Jobs["platforms"].Steps, func(one step) bool { return one.Run == "make platforms" }))
	jobs := map[string]gitlabJob{}
	parse(t, ".gitlab-ci.yml", &jobs)
	assert.Equal(t, []string{"make platforms"}, jobs["platforms"].Script)
}

var (
	makes    = regexp.MustCompile(`(?m)^\s*(?:- )?(?:run: )?make ((?:[^\s#]+ ?)+)`)
	variable = regexp.MustCompile(`^([A-Z]+)=`)
)

func TestRelease_IsMadeByTheMakefileFromATagOfOurRepositoryOnly(t *testing.T) {
	var release struct {
		On struct {
			Push struct{ Branches, Tags []string }
		}
		Jobs map[string]struct {
			If    string
			Steps []step
		}
	}
	parse(t, ".github/workflows/release.yaml", &release)
	assert.Equal(t, []string{"v*"}, release.On.Push.Tags)
	assert.Empty(t, release.On.Push.Branches)
	job := release.Jobs["release"]
	assert.Equal(t, "github.repository == 'slipway-platform/slipway'", job.If)
	made := slices.IndexFunc(job.Steps, func(one step) bool { return one.Run == `make release VERSION="$VERSION"` })
	signed := slices.IndexFunc(job.Steps, func(one step) bool { return strings.HasPrefix(one.Uses, "actions/attest-build-provenance@") })
	published := slices.IndexFunc(job.Steps, func(one step) bool { return strings.HasPrefix(one.Run, "gh release create ") })
	assert.True(t, 0 <= made && made < signed && signed < published, "made, then signed, then published")
}

func TestPipelines_MakeWhatTheMakefileHas(t *testing.T) {
	all, makefile, looked := targets(t), read(t, "Makefile"), 0
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, filepath.Join(repository, ".gitlab-ci.yml")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, command := range makes.FindAllStringSubmatch(string(text), -1) {
			for _, word := range strings.Fields(command[1]) {
				if named := variable.FindStringSubmatch(word); named != nil {
					assert.Contains(t, makefile, "$("+named[1]+")", "%s: %s", file, command[0])
				} else if !strings.Contains(word, "$") {
					_, is := all[word]
					assert.True(t, is, "%s: the Makefile has no target %s", file, word)
				}
				looked++
			}
		}
	}
	assert.Greater(t, looked, 10)
}

var (
	skipped = regexp.MustCompile(`-skip '\^Test\(([A-Za-z|]+)\)'`)
	ran     = regexp.MustCompile(`-run '\^Test([A-Za-z]+)['_]`)
)

// What make e2e leaves out would otherwise run nowhere.
func TestMakefile_WhatMakeE2ELeavesOutHasATarget(t *testing.T) {
	all := targets(t)
	left := skipped.FindStringSubmatch(all["e2e"])
	require.NotNil(t, left)
	var others []string
	for _, name := range inLab(t) {
		if found := ran.FindStringSubmatch(all[name]); found != nil && strings.Contains(all[name], "-tags e2e") && name != "e2e" {
			others = append(others, found[1])
		}
	}
	slices.Sort(others)
	others = slices.Compact(others) // a subject may have several targets
	assert.ElementsMatch(t, strings.Split(left[1], "|"), others)
	assert.True(t, slices.Contains(others, "Resume"))
}
