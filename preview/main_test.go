package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pulumi stands in for the CLI: a program registers nothing, and nothing is wrong. It runs no program.
const pulumi = `#!/bin/sh
case "$1" in
preview) echo '{"summaryEvent":{}}' ;;
esac
`

const (
	compiles = "package main\n\nfunc main() {}\n"
	doesNot  = "package main\n\nfunc main() { undefined() }\n"
)

// checkoutOf returns a checkout with the repository's stacks, in which base is the program of the only commit, and change that of the
// working tree. pulumi is a stand-in.
func checkoutOf(t *testing.T, base, change string) (folder string) {
	t.Helper()
	folder, bin := t.TempDir(), t.TempDir()
	write := func(path, text string, mode os.FileMode) { require.NoError(t, os.WriteFile(path, []byte(text), mode)) }
	require.NoError(t, os.CopyFS(filepath.Join(folder, "kubernetes"), os.DirFS(filepath.Join(repository, "kubernetes"))))
	for _, name := range []string{"Pulumi.apps.yaml", "Pulumi.infra.yaml"} {
		text, err := os.ReadFile(filepath.Join(repository, samples, name))
		require.NoError(t, err)
		write(filepath.Join(folder, name), string(text), 0o600)
	}
	write(filepath.Join(folder, "Pulumi.yaml"), "name: slipway\nruntime: go\n", 0o600)
	write(filepath.Join(folder, "go.mod"), "module example.com/program\n\ngo 1.26.0\n", 0o600)
	write(filepath.Join(folder, "main.go"), base, 0o600)
	in(t, folder, "init", "--quiet")
	commit(t, folder, "base")
	write(filepath.Join(folder, "main.go"), change, 0o600)
	write(filepath.Join(bin, "pulumi"), pulumi, 0o700)
	t.Setenv("PULUMI_HOME", t.TempDir())
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return folder
}

// in runs git in a folder, and returns what it prints.
func in(t *testing.T, folder string, args ...string) string {
	t.Helper()
	text, err := git(t.Context(), folder, args...)
	require.NoError(t, err)
	return text
}

// commit commits the files of a checkout, and returns the beginning of the commit's id.
func commit(t *testing.T, folder, message string) string {
	t.Helper()
	in(t, folder, "add", "Pulumi.*", "*.go", "go.mod", "kubernetes")
	in(t, folder, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message", message)
	return in(t, folder, "rev-parse", "--short=12", "HEAD")
}

// preview runs the command, and returns its exit code, the comment, if there is one, and both outputs.
func preview(t *testing.T, checkout string, args ...string) (code int, comment, stdout, stderr string) {
	t.Helper()
	out := filepath.Join(checkout, "bin")
	var said, failed bytes.Buffer
	code = run(t.Context(), append([]string{"-checkout", checkout, "-base", "HEAD", "-out", out}, args...), &said, &failed)
	text, err := os.ReadFile(filepath.Join(out, "preview.md"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return code, string(text), said.String(), failed.String()
}

func TestRun_AChangeThatDoesNotCompileFails(t *testing.T) {
	code, comment, stdout, stderr := preview(t, checkoutOf(t, compiles, doesNot))
	assert.Equal(t, problems, code, stderr)
	assert.Contains(t, stdout, "::error file=main.go,line=3::the program does not compile: undefined: undefined\n")
	assert.Contains(t, comment, "`main.go:3`: `the program does not compile: undefined: undefined`")
	assert.NotContains(t, comment, "Nothing changes")
}

// The change may be what fixes it.
func TestRun_ABaseThatDoesNotCompileIsANote(t *testing.T) {
	code, comment, stdout, stderr := preview(t, checkoutOf(t, doesNot, compiles))
	assert.Equal(t, fine, code, stderr)
	assert.Empty(t, stdout)
	assert.Contains(t, comment, "the base's program was not run, so that its resources are not compared: the program does not compile")
}

func TestRun_WithoutPulumiComparesNothingUnlessToldSo(t *testing.T) {
	checkout, bin := checkoutOf(t, compiles, compiles), t.TempDir()
	for _, tool := range []string{"git", "tar"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, tool)))
	}
	t.Setenv("PATH", bin)
	code, comment, _, stderr := preview(t, checkout, "-program=false")
	require.Equal(t, fine, code, stderr)
	assert.Contains(t, comment, "the program was not run")

	code, comment, _, stderr = preview(t, checkout)
	assert.Equal(t, incomplete, code)
	assert.Empty(t, comment, "that of the former run is gone")
	assert.Contains(t, stderr, "pulumi is not in PATH; install the Pulumi CLI")
}

func TestRun_AStateIsOfNoUseWithoutThePrograms(t *testing.T) {
	code, _, _, stderr := preview(t, t.TempDir(), "-program=false", "-state", "x")
	assert.Equal(t, incomplete, code)
	assert.Contains(t, stderr, "-state: it needs the programs of both sides; leave out -program=false")
}

// diverged returns a checkout whose commit gives the workers more cores, while the branch target has gone on and gives them more memory. It
// returns the commit that both come from, and that of the branch.
func diverged(t *testing.T) (checkout, from, target string) {
	t.Helper()
	checkout = checkoutOf(t, compiles, compiles)
	from = in(t, checkout, "rev-parse", "--short=12", "HEAD")
	file := filepath.Join(checkout, "Pulumi.infra.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	replaced := func(was, is string) {
		require.Contains(t, string(text), was)
		require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte(was), []byte(is), 1), 0o600))
	}
	in(t, checkout, "checkout", "--quiet", "-b", "target")
	replaced("memory: 16GiB", "memory: 24GiB")
	target = commit(t, checkout, "more memory")
	in(t, checkout, "checkout", "--quiet", "-b", "change", from)
	replaced("cores: 8", "cores: 10")
	commit(t, checkout, "more cores")
	return checkout, from, target
}

func TestRun_ComparesWithTheCommitThatTheChangeComesFrom(t *testing.T) {
	checkout, from, _ := diverged(t)
	in(t, checkout, "-c", "user.name=t", "-c", "user.email=t@example.com", "tag", "--annotate", "--message", "x", "v1", "target")
	for _, base := range []string{"target", "v1"} {
		code, comment, _, stderr := preview(t, checkout, "-program=false", "-base", base)
		require.Equal(t, fine, code, stderr)
		assert.Contains(t, comment, "nodePools[worker].cores = 10")
		assert.NotContains(t, comment, "memory", "what the base has got since is not taken back")
		assert.Contains(t, comment, "compared with `"+base+" ("+from+")`, without its newer commits.")
	}
}

func TestRun_ABaseThatHasNotGoneOnIsComparedAsItIs(t *testing.T) {
	checkout, from, _ := diverged(t)
	code, comment, _, stderr := preview(t, checkout, "-program=false", "-base", from)
	require.Equal(t, fine, code, stderr)
	assert.Contains(t, comment, "compared with `"+from+" ("+from+")`. ")
}

// A shallow clone has the tips of both branches, and not the commit that they come from.
func TestRun_WithoutACommonCommitComparesWithTheBaseItself(t *testing.T) {
	whole, _, target := diverged(t)
	shallow := t.TempDir()
	in(t, shallow, "clone", "--quiet", "--depth=1", "--no-single-branch", "file://"+whole, ".")
	code, comment, _, stderr := preview(t, shallow, "-program=false", "-base", "origin/target")
	require.Equal(t, fine, code, stderr)
	assert.Contains(t, comment, "memory `24GiB` → `16GiB`")
	assert.Contains(t, comment, "compared with `origin/target ("+target+")`, because no commit is known that both come from: "+
		"what only the base has shows as taken back.")
}

func TestRun_FetchingChartsNeedsAFolderForThem(t *testing.T) {
	code, _, _, stderr := preview(t, t.TempDir(), "-program=false", "-fetch")
	assert.Equal(t, incomplete, code)
	assert.Contains(t, stderr, "-fetch: it needs a folder for the charts; name one with -charts")
}
