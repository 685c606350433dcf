package probe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/flux/prune"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakecluster"
)

func TestPrune_IsDoneWhereThereIsNoFlux(t *testing.T) {
	t.Parallel()
	spec, err := probe.Encode(&prune.Spec{Target: probe.Target{Cluster: "infra", Kubeconfig: fakecluster.NewKube(t).Config}})
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOpen, run(t.Context(), []string{"prune"}, strings.NewReader(spec), &stdout, &stderr), stderr.String())
	assert.Contains(t, stderr.String(), "Flux has nothing to remove")
	var report prune.Report
	require.NoError(t, json.Unmarshal([]byte(probe.ReportLine(stdout.String())), &report))
	assert.Equal(t, "infra", report.Cluster)
}

func TestPrune_HasNoFlags(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitUsage, run(t.Context(), []string{"prune", "--kubeconfig", "x"}, strings.NewReader(""), &stdout, &stderr))
	assert.Equal(t, exitUsage, run(t.Context(), []string{"prune"}, strings.NewReader(`{"cluster":"infra"}`), &stdout, &stderr))
	assert.Contains(t, stderr.String(), "kubeconfig: is empty")
}
