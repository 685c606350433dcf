package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// files returns the paths of the credentials and of the stack's output gateSpec.
func (r *rig) files(t *testing.T) (kubeconfig, talosconfig, spec string) {
	t.Helper()
	public, err := health.Public(&r.spec)
	require.NoError(t, err)
	return saved(t, "kubeconfig", r.kube.Config), saved(t, "talosconfig", r.talos.Config), saved(t, "gate.json", public)
}

// saved writes a file and returns its path.
func saved(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestGate_ByHandTakesTheRegisteredNodesAsDeclared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kubeconfig, talosconfig, _ := r.files(t)
	code, report, progress := execute(t, "", "gate", "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--timeout", "20s")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, strings.Join(report.Summaries, "\n"), "(2 of 2)")

	code, report, _ = execute(t, "", "gate", "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--once", "--timeout", "20s",
		"--node", "infra-cp-1,controlplane,10.25.11.11", "--node", "infra-worker-9,worker,10.25.11.29")
	assert.Equal(t, exitUnhealthy, code)
	assert.Contains(t, problem(t, report, "infra-worker-9", "Talos API").Reason, "no route to host")
	assert.Contains(t, problem(t, report, "infra-worker-1", "registered").Command, "kubectl --kubeconfig "+kubeconfig+" get node")
}

func TestGate_ByHandComparesWithTheStacksOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fakecluster.PutCiliumNode(t, r.kube, members[1], "10.99.1.0/24")
	kubeconfig, talosconfig, spec := r.files(t)
	start := time.Now()
	code, report, progress := execute(t, "", "gate", "--spec", spec, "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	assert.Contains(t, problem(t, report, "infra-worker-1", "Cilium uses").Reason, "Cilium uses 10.99.1.0/24, the node was given 10.244.")
	assert.Less(t, time.Since(start), time.Minute, "with --once it does not wait for the timeout, ten minutes")
}

func TestGate_ByHandWritesATableOrEverythingAsJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kubeconfig, talosconfig, spec := r.files(t)
	write := func(form string) string {
		var stdout, stderr bytes.Buffer
		args := []string{"gate", "--spec", spec, "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--timeout", "20s", "-o", form}
		require.Equal(t, exitOpen, run(t.Context(), args, strings.NewReader(""), &stdout, &stderr), stderr.String())
		return stdout.String()
	}
	table := write("table")
	assert.NotContains(t, table, "{")
	assert.Contains(t, table, "passed   every declared node is Ready (2 of 2)")
	var whole health.Report
	require.NoError(t, json.Unmarshal([]byte(write("json")), &whole))
	assert.Greater(t, len(whole.Results), len(whole.Summaries))
	for _, result := range whole.Results {
		assert.Equal(t, health.Passed, result.Verdict, result.Check)
	}
}

func TestGate_ByHandRefusesTwoDeclarations(t *testing.T) {
	r := newRig(t)
	kubeconfig, talosconfig, spec := r.files(t)
	for _, args := range [][]string{
		{"--spec", spec, "--node", "a,worker,10.25.11.1"}, {"--spec", kubeconfig}, {"--spec", spec + "x"},
		{"-o", "yaml"},
		{"--node", "a,worker"},
	} {
		code, _, said := execute(t, "", append([]string{"gate", "--kubeconfig", kubeconfig, "--talosconfig", talosconfig}, args...)...)
		assert.Equal(t, exitUsage, code, args)
		assert.NotEmpty(t, said, args)
	}
}
