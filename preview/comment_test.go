package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// gh stands in for the CLI of GitHub: a pull request is at commit c0ffee, and has two comments, of which the second is that of a former
// preview. It keeps the body that a request writes. It models nothing else of GitHub.
const gh = `#!/bin/sh
case "$*" in
*/pulls*) echo '[{"number": 7, "head": {"sha": "c0ffee"}}]' ;;
*/issues/7/comments) echo '[{"id": 1, "user": {"login": "someone"}, "body": "<!-- slipway preview -->"},
	{"id": 2, "user": {"login": "github-actions[bot]"}, "body": "<!-- slipway preview --> former"}]' ;;
*"PATCH repos/o/r/issues/comments/2 -F body=@body.md"*) cp body.md written.md ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

// commented runs the step of the workflow that writes the comment, and returns what it writes; "" for nothing. prepare adds what is there
// of the preview's result.
func commented(t *testing.T, commit string, prepare func(folder string)) string {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	text, err := os.ReadFile(filepath.Join(repository, ".github", "workflows", "preview-comment.yaml"))
	require.NoError(t, err)
	var workflow struct {
		Jobs struct {
			Comment struct {
				Steps []struct {
					Run string `yaml:"run"`
				} `yaml:"steps"`
			} `yaml:"comment"`
		} `yaml:"jobs"`
	}
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	steps := workflow.Jobs.Comment.Steps
	require.NotEmpty(t, steps)
	script := steps[len(steps)-1].Run
	require.NotEmpty(t, script)

	folder, bin := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gh"), []byte(gh), 0o700))
	if prepare != nil {
		require.NoError(t, os.Mkdir(filepath.Join(folder, "result"), 0o700))
		prepare(filepath.Join(folder, "result"))
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = folder
	command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "REPOSITORY=o/r", "OWNER=someone",
		"BRANCH=change", "COMMIT="+commit, "RUN=https://example.com/run/1")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	written, err := os.ReadFile(filepath.Join(folder, "written.md"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(written)
}

func TestComment_IsTheResultOfThePreview(t *testing.T) {
	assert.Equal(t, "<!-- slipway preview -->\n## Preview\n", commented(t, "c0ffee", func(folder string) {
		text := "<!-- slipway preview -->\n## Preview\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, "preview.md"), []byte(text), 0o600))
	}))
	assert.Empty(t, commented(t, "beef", nil), "the pull request has a newer commit")
}

// Otherwise the comment of the former commit would look like that of this one.
func TestComment_WithoutAResultSaysThatThePreviewFailed(t *testing.T) {
	const failed = "<!-- slipway preview -->\nThe preview of `c0ffee` failed: see [the run](https://example.com/run/1).\n"
	for name, prepare := range map[string]func(string){
		"no artifact":         nil,
		"an artifact without": func(string) {},
		"an empty file": func(folder string) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "preview.md"), nil, 0o600))
		},
		"a link to a file of the job": func(folder string) {
			require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(folder, "preview.md")))
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, failed, commented(t, "c0ffee", prepare)) })
	}
}
