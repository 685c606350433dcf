package probe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/argocd/removal"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakecluster"
)

func TestArgoCDRemoval_IsDoneWhereThereIsNoArgoCD(t *testing.T) {
	t.Parallel()
	for _, cascade := range []bool{false, true} {
		spec, err := probe.Encode(&removal.Spec{Target: probe.Target{Cluster: "infra", Kubeconfig: fakecluster.NewKube(t).Config}, Delete: cascade})
		require.NoError(t, err)
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitOpen, run(t.Context(), []string{"argocd-removal"}, strings.NewReader(spec), &stdout, &stderr), stderr.String())
		assert.Contains(t, stderr.String(), "Argo CD has nothing to remove")
		var report removal.Report
		require.NoError(t, json.Unmarshal([]byte(probe.ReportLine(stdout.String())), &report))
		assert.Equal(t, "infra", report.Cluster)
		assert.Equal(t, "argocd-removal", report.Kind)
	}
}

func TestArgoCDRemoval_HasNoFlags(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitUsage, run(t.Context(), []string{"argocd-removal", "--kubeconfig", "x"}, strings.NewReader(""), &stdout, &stderr))
	assert.Equal(t, exitUsage, run(t.Context(), []string{"argocd-removal"}, strings.NewReader(`{"cluster":"infra"}`), &stdout, &stderr))
	assert.Contains(t, stderr.String(), "kubeconfig: is empty")
}
