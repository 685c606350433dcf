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
		text, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		write(filepath.Join(folder, name), string(text), 0o600)
	}
	write(filepath.Join(folder, "Pulumi.yaml"), "name: slipway\nruntime: go\n", 0o600)
	write(filepath.Join(folder, "go.mod"), "module example.com/program\n\ngo 1.26.0\n", 0o600)
	write(filepath.Join(folder, "main.go"), base, 0o600)
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message", "base"},
	} {
		_, err := git(t.Context(), folder, args...)
		require.NoError(t, err)
	}
	write(filepath.Join(folder, "main.go"), change, 0o600)
	write(filepath.Join(bin, "pulumi"), pulumi, 0o700)
	t.Setenv("PULUMI_HOME", t.TempDir())
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return folder
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

// The change may be what mends it.
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
