package crds

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/internal/probe"
)

func TestRun_AppliesEverySourceAndWaitsUntilItIsServed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", "# a comment\n---\n"+crd("a.example.com")+"---\n"+crd("b.example.com")+"status: {conditions: []}\n---\n")
	f.source("two", crd("c.example.com"))
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, report.CRDs)
	assert.Equal(t, 3, report.Changed)
	assert.Equal(t, []string{"a.example.com", "b.example.com"}, report.Sources[0].CRDs)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(f.manifests["/two"]))), report.Sources[1].SHA256)
	assert.NotContains(t, f.api.objects["b.example.com"].Object["metadata"], "creationTimestamp")
	assert.Contains(t, f.progress.String(), "fetched one v1.0.0: 2 CRDs")

	again, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, again.CRDs)
	assert.Zero(t, again.Changed, "the second run changes nothing")
}

func TestRun_ChangesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com")+"---\n"+crd("b.example.com"))
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	f.manifests["/one"] = crd("a.example.com") + "---\n" + crd("b.example.com") + "  scope: Cluster\n"
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"b.example.com"}, report.Sources[0].Changed)
}

func TestRun_AppliesNothingWhileAnyManifestIsWrong_AndNamesAllThatAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("good", crd("a.example.com"))
	f.source("installs", crd("b.example.com")+"---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n")
	f.source("page", "<!DOCTYPE html>\n<html>")
	f.source("empty", "# nothing\n")
	f.source("old", strings.ReplaceAll(crd("d.example.com"), "/v1", "/v1beta1"))
	f.spec.Sources = append(f.spec.Sources, Source{Name: "gone", Version: "v9", URL: f.base + "/gone"})
	f.source("pinned", crd("e.example.com")).SHA256 = strings.Repeat("0", 64)
	_, err := f.run.run(t.Context())
	for _, want := range []string{
		`installs v1.0.0: ` + f.base + `/installs: document 2: is a Namespace named "x", and only CRDs are applied`,
		"page v1.0.0: ", "document 1: is not a YAML mapping; is this a manifest?",
		"/empty: holds no CustomResourceDefinition",
		"CRD d.example.com is of apiextensions.k8s.io/v1beta1",
		"gone v9: ", "404 Not Found; is there such a release",
		"has sha256 ", "but 0000000000000000000000000000000000000000000000000000000000000000 is pinned",
	} {
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, f.api.applied)
}

func TestRun_AppliesOnlyTheCRDsOfABundle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("operator", "kind: Namespace\napiVersion: v1\n---\n"+crd("a.example.com")+
		"---\nkind: Deployment\n---\nkind: Deployment\n").Bundle = true
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a.example.com"}, f.api.applied)
	assert.Equal(t, map[string]int{"Namespace": 1, "Deployment": 2}, report.Sources[0].LeftOut)
	var text strings.Builder
	require.NoError(t, probe.Write(&text, report))
	assert.Contains(t, text.String(), "1 CRDs, 1 changed; left out: 2 Deployment, 1 Namespace")
	assert.Contains(t, probe.ReportLine(text.String()), `"leftOut":{"Deployment":2,"Namespace":1}`)
}

func TestRun_RefusesACRDThatTwoSourcesHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com"))
	f.source("two", crd("a.example.com"))
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "CRD a.example.com: is in one and in two; skip one of them")
	assert.Empty(t, f.api.applied)
}

func TestRun_ReportsAConflictByCRDManagerAndField(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com")+"---\n"+crd("b.example.com"))
	f.api.onApply = func(name string, w http.ResponseWriter) bool {
		if name != "a.example.com" {
			return false
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,
			"message":"Apply failed with 2 conflicts","details":{"causes":[
			{"reason":"FieldManagerConflict","message":"conflict with \"helm\" using apiextensions.k8s.io/v1","field":".spec.versions"},
			{"reason":"FieldManagerConflict","message":"conflict with \"helm\" using apiextensions.k8s.io/v1","field":".spec.scope"}]}}`)
		return true
	}
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, `CRD a.example.com of one v1.0.0: "helm" has set .spec.versions, .spec.scope to something else`)
	require.ErrorContains(t, err, "--force-conflicts --field-manager=slipway")
	assert.Equal(t, []string{"b.example.com"}, f.api.applied, "the CRD without a conflict is applied")
}

func TestRun_TriesAgainWhileTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com"))
	failures := 3
	f.api.onApply = func(_ string, w http.ResponseWriter) bool {
		failures--
		if failures < 0 {
			return false
		}
		http.Error(w, "etcd is without leader", http.StatusServiceUnavailable)
		return true
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
}

// An API server that is killed leaves answers unfinished.
func TestRun_TriesAgainAfterAnAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com"))
	var broke atomic.Bool
	f.api.onApply = func(_ string, w http.ResponseWriter) bool {
		if broke.Swap(true) {
			return false
		}
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"kind":`))
		return true
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.True(t, broke.Load())
}

func TestRun_TriesAFetchAgainThatFailsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	calls := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			http.Error(w, "", http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprint(w, crd("a.example.com"))
	}))
	t.Cleanup(server.Close)
	f.http.Transport = server.Client().Transport
	f.source("one", "").URL = server.URL
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Contains(t, f.progress.String(), "fetches one again: "+server.URL+": answers 502 Bad Gateway")
}

func TestRun_FollowsNoRedirectToPlainHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := httptest.NewTLSServer(http.RedirectHandler("http://127.0.0.1:1/x", http.StatusFound))
	t.Cleanup(server.Close)
	f.http.Transport = server.Client().Transport
	f.source("one", "").URL = server.URL
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "is redirected to http://127.0.0.1:1/x, which is not https")
}

func TestRun_NamesWhatIsNotServedWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com")+"---\n"+crd("b.example.com"))
	f.spec.Timeout = probe.Duration(time.Second)
	f.api.establish = func(name string) bool { return name == "b.example.com" }
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err,
		"CRD a.example.com of one v1.0.0: not done within 1s (last: has no conditions yet); kubectl get customresourcedefinition a.example.com")
	assert.NotContains(t, err.Error(), "b.example.com")
}

func TestRun_SaysOfAServerThatGoesAwayThatItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com"))
	f.spec.Timeout = probe.Duration(time.Second)
	f.api.establish = func(string) bool {
		f.api.down.Store(true)
		return false
	}
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "CRD a.example.com of one v1.0.0: not done within 1s (last: ")
	assert.NotContains(t, err.Error(), "deleted", "nobody has seen that")
}

func TestRun_SaysThatACRDWasDeletedDuringTheWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com"))
	f.api.establish = func(name string) bool {
		delete(f.api.objects, name)
		return false
	}
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "CRD a.example.com of one v1.0.0: was deleted during the wait")
}

func TestRun_DoesNotWaitForNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source("one", crd("a.example.com"))
	f.api.establish = func(name string) bool {
		next := f.api.objects[name].DeepCopy()
		condition(next, "NamesAccepted", "False", "PluralConflict", `"as" is already in use`)
		f.api.put(next)
		return false
	}
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, `its names are not accepted: PluralConflict: "as" is already in use`)
}

func TestRun_QuotesNothingOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Spec{Target: probe.Target{Kubeconfig: "client-key-data: c2VjcmV0\n\tx"}}, &strings.Builder{})
	require.EqualError(t, err, "kubeconfig: is not a valid kubeconfig")
}

func TestJudge_ReturnsWhyACRDIsNotEstablished(t *testing.T) {
	t.Parallel()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	condition(o, "Established", "False", "Installing", "the initial names have been accepted")
	state, done, err := judge(o)
	require.NoError(t, err)
	assert.False(t, done)
	assert.Equal(t, "not established: Installing: the initial names have been accepted", state)
}
