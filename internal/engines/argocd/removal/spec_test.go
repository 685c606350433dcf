package removal

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
		Target: probe.Target{Cluster: "infra", Kubeconfig: "x", Timeout: probe.Duration(10 * time.Minute)}, Namespace: "argocd", Root: "root",
	}, spec)
	require.Error(t, probe.Read(strings.NewReader(`{"cluster":"infra","kubeconfig":"x","policy":"delete"}`), &spec))
}

func TestReport_EndsWithOneLineOfJSON(t *testing.T) {
	var text strings.Builder
	report := Report{
		Head:    probe.Head{Kind: "argocd-removal", Cluster: "infra", Took: probe.Duration(4200 * time.Millisecond)},
		Removed: []string{"Application argocd/root"}, Released: []string{"Application argocd/other"}, Stays: []string{"what x has applied: y"},
	}
	require.NoError(t, probe.Write(&text, report))
	assert.Equal(t, "removal of Argo CD's Applications in infra: "+report.Sentence()+`
  removed   Application argocd/root
  released  Application argocd/other
  stays     what x has applied: y
`, strings.TrimSuffix(text.String(), probe.ReportLine(text.String())+"\n"))
	assert.Equal(t, "Argo CD has removed what it had applied after 4.2 s; objects of Argo CD that are gone: 2", report.Sentence())
	assert.JSONEq(t, `{"kind":"argocd-removal","cluster":"infra","removed":["Application argocd/root"],
"released":["Application argocd/other"],"stays":["what x has applied: y"],"took":"4.2s"}`, probe.ReportLine(text.String()))
}

func TestReport_SaysThatWhatWasAppliedStays(t *testing.T) {
	report := Report{Head: probe.Head{Took: probe.Duration(time.Second)}, Released: []string{"Application argocd/root"}}
	assert.Equal(t, "what Argo CD has applied stays; objects of Argo CD that are gone after 1.0 s: 1", report.Sentence())
}
