package probe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/engines/argocd/removal"
	"github.com/slipway-platform/slipway/internal/engines/flux/prune"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

func TestRemovals_AreDoneWhereThereIsNoEngine(t *testing.T) {
	t.Parallel()
	target := probe.Target{Cluster: "infra", Kubeconfig: fakecluster.NewKube(t).Config}
	for _, test := range []struct {
		subcommand, sentence string
		spec                 probe.Spec
	}{
		{"prune", "Flux has nothing to remove", &prune.Spec{Target: target}},
		{"argocd-removal", "Argo CD has nothing to remove", &removal.Spec{Target: target}},
		{"argocd-removal", "Argo CD has nothing to remove", &removal.Spec{Target: target, Delete: true}},
	} {
		spec := encode(t, test.spec)
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitOpen, run(t.Context(), []string{test.subcommand}, strings.NewReader(spec), &stdout, &stderr), stderr.String())
		assert.Contains(t, stderr.String(), test.sentence)
		var report probe.Head
		require.NoError(t, json.Unmarshal([]byte(probe.ReportLine(stdout.String())), &report))
		assert.Equal(t, []string{"infra", test.subcommand}, []string{report.Cluster, report.Kind})
	}
}

func TestRemovals_HaveNoFlags(t *testing.T) {
	t.Parallel()
	for _, subcommand := range []string{"prune", "argocd-removal"} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUsage, run(t.Context(), []string{subcommand, "--kubeconfig", "x"}, strings.NewReader(""), &stdout, &stderr))
		assert.Equal(t, exitUsage, run(t.Context(), []string{subcommand}, strings.NewReader(`{"cluster":"infra"}`), &stdout, &stderr))
		assert.Contains(t, stderr.String(), "kubeconfig: is empty")
	}
}
