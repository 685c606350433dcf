package prune

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

func TestSpec_NeedsAClusterAndNamesTheObjectsOfTheHandoverByDefault(t *testing.T) {
	require.ErrorContains(t, (&Spec{}).Validate(), "cluster: is empty")
	var spec Spec
	require.NoError(t, probe.Read(strings.NewReader(`{"cluster":"infra","kubeconfig":"x"}`), &spec))
	assert.Equal(t, Spec{
		Target:    probe.Target{Cluster: "infra", Kubeconfig: "x", Timeout: probe.Duration(10 * time.Minute)},
		Namespace: "flux-system", Instance: "flux", Kustomization: "flux-system",
	}, spec)
}

func TestReport_EndsWithOneLineOfJSON(t *testing.T) {
	var text strings.Builder
	report := Report{Head: probe.Head{Kind: "prune", Cluster: "infra", Took: probe.Duration(4200 * time.Millisecond)},
		Removed: []string{"Kustomization flux-system/flux-system"}, Stays: []string{"HelmRelease flux-system/cilium: has x"}}
	require.NoError(t, probe.Write(&text, report))
	assert.Equal(t, `prune of infra: Flux has removed what it had applied after 4.2 s; objects of Flux that are gone: 1
  removed  Kustomization flux-system/flux-system
  stays    HelmRelease flux-system/cilium: has x
`, strings.TrimSuffix(text.String(), probe.ReportLine(text.String())+"\n"))
	assert.JSONEq(t, `{"kind":"prune","cluster":"infra","removed":["Kustomization flux-system/flux-system"],
"stays":["HelmRelease flux-system/cilium: has x"],"took":"4.2s"}`, probe.ReportLine(text.String()))
}
