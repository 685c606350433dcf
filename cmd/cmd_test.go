package cmd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// TestMain makes the test's binary the command if it is started under its name, so that nothing is linked a second time.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == program {
		Main()
		return
	}
	os.Exit(m.Run())
}

// install puts the command into a folder.
func install(t *testing.T, folder string) {
	t.Helper()
	own, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(folder, 0o750))
	require.NoError(t, os.Symlink(own, filepath.Join(folder, program)))
}

// slipway runs a line of shell in a folder, and returns what it prints.
func slipway(t *testing.T, folder, line string) (out, problems string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Dir, command.Stdout, command.Stderr = folder, &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

func TestSlipway_ChecksTheStackFilesOfAFolder(t *testing.T) {
	folder := filepath.Dir(fixtures.Write(t, fixtures.Minimal, "home"))
	install(t, filepath.Join(folder, "bin"))
	out, problems, err := slipway(t, folder, "bin/slipway check home")
	require.NoError(t, err, problems)
	assert.Contains(t, out, "Pulumi.home.yaml: valid\n")
}

func TestSlipway_NamesItsSubcommands(t *testing.T) {
	folder := t.TempDir()
	install(t, folder)
	help, _, err := slipway(t, folder, "./slipway help")
	require.NoError(t, err)
	for _, one := range []string{"check", "completion", "handover-file", "manifests", "mesh-ca", "new", "probe", "version"} {
		assert.Contains(t, help, "  "+one+" ")
	}
	for _, wrong := range []string{"./slipway", "./slipway chek", "./slipway probe gait"} {
		_, problems, err := slipway(t, folder, wrong)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, wrong)
		assert.Equal(t, command.Misuse, exit.ExitCode(), wrong)
		assert.Contains(t, problems, "Usage:\n  slipway", wrong)
	}
	out, _, err := slipway(t, folder, "./slipway version")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out, "slipway (devel) "), out)
}

func TestSlipway_CompletesSubcommandsAndFormsOfTheProbe(t *testing.T) {
	folder := t.TempDir()
	install(t, folder)
	for line, want := range map[string]string{
		"completion bash": "# bash completion V2 for slipway", "completion fish": "# fish completion for slipway",
		"completion zsh": "#compdef slipway", "completion powershell": "# powershell completion for slipway",
		"__complete probe ga": "gate\t", "__complete probe gate -o j": "json\n", "__complete probe gate --talos": "--talosconfig\t",
	} {
		out, problems, err := slipway(t, folder, "./slipway "+line)
		require.NoError(t, err, problems)
		assert.Contains(t, out, want, line)
	}
}

// The line is the one in the state.
func TestInstalled_TheLineOfTheGraphFindsTheBinaryOfTheProjectBeforePATH(t *testing.T) {
	folder := t.TempDir()
	_, _, err := slipway(t, folder, "PATH=/usr/bin:/bin; "+probe.Installed+" gate -h")
	require.Error(t, err, "there is none")
	install(t, filepath.Join(folder, "bin"))
	help, _, err := slipway(t, folder, "PATH=/usr/bin:/bin; "+probe.Installed+" gate -h")
	require.NoError(t, err)
	assert.Contains(t, help, "slipway probe gate --kubeconfig FILE")
}

func TestInstalled_TheCommandsMustFindTheRunningBinary(t *testing.T) {
	folder, path := t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	require.ErrorContains(t, checkInstalled(folder),
		"there is no bin/slipway in the project's folder, and no slipway on PATH; put the binary there")
	install(t, path)
	require.NoError(t, checkInstalled(folder))
	other := filepath.Join(folder, "bin", program)
	require.NoError(t, os.Mkdir(filepath.Dir(other), 0o750))
	require.NoError(t, os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700))
	require.ErrorContains(t, checkInstalled(folder), "the commands of the stack would run "+other+"; keep one of the two")
	require.NoError(t, os.Remove(other))
	install(t, filepath.Dir(other))
	require.NoError(t, checkInstalled(folder))
}

func TestDeploy_AsksFirstWhichVersionTheManifestsNeed(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("kubernetes", 0o750))
	require.NoError(t, os.WriteFile(tree.WrittenFile, []byte("version: latest"), 0o600))
	assert.ErrorContains(t, deploy(nil), tree.WrittenFile+": version: latest is no release")
}

func TestInstalled_IsWhatTheProjectSays(t *testing.T) {
	for text, want := range map[string]bool{
		"runtime: go": false, "runtime: {name: go, options: {buildTarget: bin/slipway}}": false,
		"runtime: {name: go, options: {binary: slipway}}": true,
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.yaml"), []byte("name: home\n"+text+"\n"), 0o600))
		installed, err := namesBinary(folder)
		require.NoError(t, err)
		assert.Equal(t, want, installed, text)
	}
	installed, err := namesBinary("..")
	require.NoError(t, err)
	assert.False(t, installed, "this repository is built from source")
}
