package program

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

// exported returns what pulumi stack export writes of a stack: a provider with a secret, and a release of it.
func exported(stack string) string {
	secretOf := func(text string) string {
		return fmt.Sprintf(`{"%s": "%s", "ciphertext": "%s"}`, signature, secret, text)
	}
	return fmt.Sprintf(`{"version": 3, "deployment": {
	"manifest": {"time": "2026-01-02T04:04:05.678+01:00"},
	"secrets_providers": {"type": "passphrase", "state": {"salt": "v1:MINE"}},
	"pending_operations": [{"type": "creating"}],
	"resources": [
		{"urn": "urn:pulumi:%[1]s::slipway::pulumi:providers:kubernetes::kubernetes", "type": "pulumi:providers:kubernetes",
			"inputs": {"kubeconfig": %[2]s}, "outputs": {"kubeconfig": %[2]s}},
		{"urn": "urn:pulumi:%[1]s::slipway::kubernetes:helm.sh/v3:Release::cilium", "type": "kubernetes:helm.sh/v3:Release", "custom": true,
			"inputs": {"values": {"key": %[2]s, "list": [1, %[2]s]}, "name": "cilium"},
			"outputs": {"__inputs": %[2]s, "name": "cilium", "status": %[3]s}, "replacementTrigger": %[3]s}
	]}}`, stack, secretOf("CIPHERTEXT"), strings.Replace(secretOf("PLAIN"), "ciphertext", "plaintext", 1))
}

func writeStates(t *testing.T, states map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range states {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

func TestStates_AreReadWithoutAnySecret(t *testing.T) {
	folder := writeStates(t, map[string]string{"a.json": exported("infra"), "b.json": exported("apps"), "other.txt": "x"})
	states, err := ReadStates(folder)
	require.NoError(t, err)
	require.Len(t, states, 2)
	infra := states["infra"]
	assert.Equal(t, "slipway", infra.Project)
	assert.Equal(t, "2026-01-02T03:04:05Z", infra.Time)
	text, err := json.Marshal(infra.deployment["resources"])
	require.NoError(t, err)
	assert.NotContains(t, string(text), "CIPHERTEXT")
	assert.NotContains(t, string(text), "PLAIN")
	assert.NotContains(t, infra.deployment, "pending_operations")

	resources := infra.deployment["resources"].([]any)
	masked := map[string]any{signature: secret, "plaintext": `"placeholder"`}
	provider, release := resources[0].(map[string]any), resources[1].(map[string]any)
	assert.Equal(t, map[string]any{"kubeconfig": unknown}, provider["inputs"], "so that Pulumi does not configure it")
	assert.Equal(t, map[string]any{"values": map[string]any{"key": masked, "list": []any{1.0, masked}}, "name": "cilium"}, release["inputs"])
	assert.Equal(t, masked, release["replacementTrigger"])
	outputs := release["outputs"].(map[string]any)
	assert.Equal(t, unknown, outputs["status"])
	assert.Equal(t, "cilium", outputs["name"])
	var kept map[string]any
	require.NoError(t, json.Unmarshal([]byte(outputs["__inputs"].(map[string]any)["plaintext"].(string)), &kept))
	assert.Equal(t, release["inputs"], kept, "which the Kubernetes plugin reads")
}

func TestStates_ThatCannotBeUsedSayWhatToDo(t *testing.T) {
	for says, states := range map[string]map[string]string{
		"pulumi stack export":            {},
		"no resources of a deployment":   {"a.json": `{"version": 3, "checkpoint": {}}`},
		"there is another file of stack": {"a.json": exported("infra"), "b.json": exported("infra")},
		`"x" is no URN`:                  {"a.json": `{"deployment": {"resources": [{"urn": "x"}]}}`},
		"invalid character":              {"a.json": "x"},
	} {
		_, err := ReadStates(writeStates(t, states))
		assert.ErrorContains(t, err, says)
	}
	_, err := ReadStates(filepath.Join(t.TempDir(), "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestProject_RunsOnACopyOfTheStateWithOtherPlaceholders(t *testing.T) {
	checkout, home := checkoutOf(t, "package main\n\nfunc main() {}\n")
	prepared(t, home, events+`{"resourcePreEvent":{"metadata":{"op":"delete","urn":"urn:pulumi:infra::slipway::a:b:C::gone",`+
		`"old":{"type":"a:b:C","urn":"urn:pulumi:infra::slipway::a:b:C::gone","protect":true,"inputs":{"a":1}}}}}`+"\n"+
		`{"summaryEvent":{}}`+"\n", "0")
	folder := filepath.Join(t.TempDir(), "change")
	project, err := New(t.Context(), folder, checkout, config.Placeholders{"meshCA": "PLACEHOLDER", "gitPassword": "x"})
	require.NoError(t, err)
	states, err := ReadStates(writeStates(t, map[string]string{"infra.json": exported("infra")}))
	require.NoError(t, err)
	require.Empty(t, project.Preview(t.Context(), cluster.New("infra"), []byte(stackFile)).Problems)
	// As `pulumi stack init` does.
	file := filepath.Join(folder, "Pulumi.infra.yaml")
	require.NoError(t, os.WriteFile(file, []byte("encryptionsalt: v1:THROWAWAY\n"), 0o600))

	others := config.Placeholders{"meshCA": "OTHER", "gitPassword": "y"}
	outcome := project.OnState(t.Context(), cluster.New("infra"), []byte(stackFile), states["infra"], others)
	require.Empty(t, outcome.Problems)
	last := outcome.Operations[len(outcome.Operations)-1]
	assert.Equal(t, report.Operation{Op: "delete", Type: "a:b:C", Name: "gone", Protect: true, Before: map[string]any{"a": 1.0}}, last)
	calls, err := os.ReadFile(filepath.Join(home, "calls"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(calls), "stack import")
	require.True(t, found)
	assert.Contains(t, string(calls), "  slipway:meshCA=OTHER\n")
	assert.Contains(t, after, "preview --non-interactive")
	assert.NotContains(t, string(calls), "--refresh")
	imported, err := os.ReadFile(filepath.Join(folder, "state.infra.json"))
	require.NoError(t, err)
	assert.Contains(t, string(imported), "v1:THROWAWAY")
	assert.NotContains(t, string(imported), "v1:MINE")
	assert.NotContains(t, string(imported), "CIPHERTEXT")

	states["infra"].Project = "another"
	outcome = project.OnState(t.Context(), cluster.New("infra"), []byte(stackFile), states["infra"], others)
	require.Len(t, outcome.Problems, 1)
	assert.Contains(t, outcome.Problems[0].Text, "it is that of project another, and this one is slipway")
}

// The program refuses these keys for a cluster that does not exist, and nothing exists on an empty backend.
func TestProject_OnlyTheRunOnTheStateHasTheKeysOfAnExistingCluster(t *testing.T) {
	for _, form := range []string{"  slipway:lifecycle: %s\n", "  lifecycle: %s\n", "  slipway:lifecycle: '%s'\n"} {
		runsWithLifecycle(t, fmt.Sprintf(form, "{maxUnavailable: 2, certificateAuthorities: {talos: 2}, skip: [infra-worker-1]}"))
	}
}

func runsWithLifecycle(t *testing.T, lifecycle string) {
	t.Helper()
	checkout, home := checkoutOf(t, "package main\n\nfunc main() {}\n")
	prepared(t, home, events+`{"summaryEvent":{}}`+"\n", "0")
	folder := filepath.Join(t.TempDir(), "change")
	project, err := New(t.Context(), folder, checkout, config.Placeholders{"meshCA": "PLACEHOLDER", "gitPassword": "x"})
	require.NoError(t, err)
	declared := func() string {
		text, err := os.ReadFile(filepath.Join(folder, "Pulumi.infra.yaml"))
		require.NoError(t, err)
		return string(text)
	}
	require.Empty(t, project.Preview(t.Context(), cluster.New("infra"), []byte(stackFile+lifecycle)).Problems)
	assert.Contains(t, declared(), "maxUnavailable: 2")
	assert.NotContains(t, declared(), "certificateAuthorities")
	assert.NotContains(t, declared(), "skip")

	// As `pulumi stack init` does.
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.infra.yaml"), []byte("encryptionsalt: v1:THROWAWAY\n"+declared()), 0o600))
	states, err := ReadStates(writeStates(t, map[string]string{"infra.json": exported("infra")}))
	require.NoError(t, err)
	secrets := config.Placeholders{"meshCA": "OTHER", "gitPassword": "y"}
	require.Empty(t, project.OnState(t.Context(), cluster.New("infra"), []byte(stackFile+lifecycle), states["infra"], secrets).Problems)
	for _, part := range []string{"THROWAWAY", "maxUnavailable: 2", "talos: 2", "infra-worker-1"} {
		assert.Contains(t, declared(), part)
	}
}

func TestParse_AResourceThatIsRetainedIsForgottenAndNotDeleted(t *testing.T) {
	for op, retain := range map[string]bool{report.Forget: true, "delete": false} {
		line := fmt.Sprintf(`{"resourcePreEvent":{"metadata":{"op":"delete","old":{"type":"a:b:C",`+
			`"urn":"urn:pulumi:infra::slipway::a:b:C::gone","retainOnDelete":%t}}}}`, retain) + "\n" + `{"summaryEvent":{}}`
		outcome, err := parse([]byte(line), "/src/checkout")
		require.NoError(t, err)
		require.Len(t, outcome.Operations, 1)
		assert.Equal(t, op, outcome.Operations[0].Op)
	}
}

// Pulumi replaces a protected resource if the program does not protect it any more.
func TestParse_AnOperationIsProtectedUnlessTheProgramTakesTheProtectionAway(t *testing.T) {
	const vm = `{"type":"a:b:VM","urn":"urn:pulumi:infra::slipway::a:b:VM::cp-2","protect":%t}`
	protected, unprotected := fmt.Sprintf(vm, true), fmt.Sprintf(vm, false)
	for _, test := range []struct {
		op, states string
		protect    bool
	}{
		{"delete", `"old":` + protected, true},
		{"replace", `"old":` + protected + `,"new":` + protected, true},
		{"replace", `"old":` + protected + `,"new":` + unprotected, false},
		{"replace", `"old":` + unprotected + `,"new":` + protected, false},
		{"create", `"new":` + protected, false},
	} {
		line := fmt.Sprintf(`{"resourcePreEvent":{"metadata":{"op":%q,%s}}}`, test.op, test.states) + "\n" + `{"summaryEvent":{}}`
		outcome, err := parse([]byte(line), "/src/checkout")
		require.NoError(t, err)
		require.Len(t, outcome.Operations, 1)
		assert.Equal(t, test.protect, outcome.Operations[0].Protect, line)
	}
}
