package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

// pulumi stands in for the CLI: it writes down how it is called, and prints prepared events for a preview. It runs no program.
const pulumi = `#!/bin/sh
{ echo "$1 $2 backend=$PULUMI_BACKEND_URL token=$PULUMI_ACCESS_TOKEN"; for argument in "$@"; do echo "  $argument"; done; } >>"$HOME/calls"
case "$1" in
preview) cat "$HOME/events"; exit "$(cat "$HOME/code")" ;;
esac
`

// checkoutOf returns a checkout with a program of one line, and a home with the stand-in for the CLI first in PATH.
func checkoutOf(t *testing.T, program string) (checkout, home string) {
	t.Helper()
	checkout, home = t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\n\ngo 1.26.0\n", "main.go": program, "Pulumi.yaml": "name: slipway\nruntime: go\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, "pulumi"), []byte(pulumi), 0o700))
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache))) // which is in HOME otherwise
	t.Setenv("PULUMI_HOME", "")
	t.Setenv("PULUMI_ACCESS_TOKEN", "MINE")
	t.Setenv("PATH", home+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", home)
	return checkout, home
}

func prepared(t *testing.T, home, events, code string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(home, "events"), []byte(events), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "code"), []byte(code), 0o600))
}

const stackFile = "config:\n  slipway:meshCA:\n    secure: v1:CIPHERTEXT\n  slipway:cluster: {name: infra, id: 1}\n"

func TestProject_PreviewsOnAnEmptyBackendWithPlaceholders(t *testing.T) {
	checkout, home := checkoutOf(t, "package main\n\nfunc main() {}\n")
	prepared(t, home, events+`{"summaryEvent":{}}`+"\n", "0")
	folder := filepath.Join(t.TempDir(), "change")
	project, err := New(t.Context(), folder, checkout, config.Placeholders{"meshCA": "PLACEHOLDER", "gitPassword": "OTHER"})
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(folder, "slipway"), "the program is built")

	outcome := project.Preview(t.Context(), cluster.New("infra"), []byte(stackFile))
	assert.Empty(t, outcome.Problems)
	assert.NotEmpty(t, outcome.Resources)
	calls, err := os.ReadFile(filepath.Join(home, "calls"))
	require.NoError(t, err)
	text := string(calls)
	assert.Contains(t, text, "stack init backend=file://"+folder+"/backend token=\n")
	assert.Contains(t, text, "  slipway:meshCA=PLACEHOLDER\n")
	assert.Contains(t, text, "preview --non-interactive")
	assert.NotContains(t, text, "MINE")
	copied, err := os.ReadFile(filepath.Join(folder, "Pulumi.infra.yaml"))
	require.NoError(t, err)
	assert.NotContains(t, string(copied), "CIPHERTEXT")
}

func TestProject_ReportsWhatTheProgramRefuses(t *testing.T) {
	checkout, home := checkoutOf(t, "package main\n\nfunc main() {}\n")
	prepared(t, home, `{"diagnosticEvent":{"message":"network.vip: is missing\n","severity":"error"}}`+"\n", "255")
	project, err := New(t.Context(), filepath.Join(t.TempDir(), "change"), checkout, config.Placeholders{"meshCA": "x", "gitPassword": "x"})
	require.NoError(t, err)
	outcome := project.Preview(t.Context(), cluster.New("infra"), []byte(stackFile))
	require.Len(t, outcome.Problems, 1)
	assert.Equal(t, "network.vip: is missing", outcome.Problems[0].Text)

	prepared(t, home, "panic: something\n", "2")
	outcome = project.Preview(t.Context(), cluster.New("infra"), []byte(stackFile))
	require.Len(t, outcome.Problems, 1)
	assert.Contains(t, outcome.Problems[0].Text, "panic: something")
}

func TestProject_NeedsAProgramThatCompilesAndTheCLI(t *testing.T) {
	checkout, home := checkoutOf(t, "package main\n\nfunc main() { undefined() }\n")
	_, err := New(t.Context(), filepath.Join(t.TempDir(), "change"), checkout, nil)
	require.ErrorContains(t, err, "undefined: undefined")
	assert.Equal(t, []report.Problem{{File: "main.go", Line: 3, Text: "the program does not compile: undefined: undefined"}}, Problems(err))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("go 1.26.0\nunknown\n"), 0o600))
	_, err = New(t.Context(), filepath.Join(t.TempDir(), "change"), checkout, nil)
	require.Len(t, Problems(err), 1)
	assert.Equal(t, "go.mod", Problems(err)[0].File)
	require.NoError(t, os.Remove(filepath.Join(checkout, "go.mod")))
	_, err = New(t.Context(), filepath.Join(t.TempDir(), "change"), checkout, nil)
	require.Len(t, Problems(err), 1, "without a place")
	assert.Contains(t, Problems(err)[0].Text, "the program does not compile: exit status 1 go: ")

	require.NoError(t, os.Remove(filepath.Join(home, "pulumi")))
	t.Setenv("PATH", home)
	_, err = New(t.Context(), filepath.Join(t.TempDir(), "change"), checkout, nil)
	assert.ErrorIs(t, err, ErrNoPulumi)
}
