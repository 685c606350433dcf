package removal

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/probe"
)

// workloads is everything that Applications have applied, and what nobody has.
var workloads = []string{
	"Deployment coredns/coredns", "Deployment dns/dns", "Deployment other/other", "Deployment team/team", "Deployment web/web",
}

const (
	releases      = `{"metadata":{"finalizers":[]}}`
	releasesOther = "PATCH Application argocd/other " + releases
	deletesOther  = "DELETE Application argocd/other Background"
)

func TestRelease_DeletesEveryApplicationAndLeavesWhatTheyHaveApplied(t *testing.T) {
	for name, off := range map[string]bool{"with Argo CD": false, "after Argo CD has gone": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.api.off = off
			report, err := f.run.run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, workloads, f.api.exists())
			assert.Equal(t, []string{
				"Application argocd/apps", "Application argocd/other", "Application argocd/root", "Application argocd/team",
				"ApplicationSet argocd/tenants",
			}, report.Released)
			assert.Empty(t, report.Removed)
			assert.Empty(t, report.Stays)
		})
	}
}

// An owner that is there still makes again what is deleted below it, and an ApplicationSet that is deleted takes its Applications along.
func TestRelease_LetsOwnersGoFirstAndOrphansWhatAnApplicationSetHasMade(t *testing.T) {
	f := newFixture(t)
	f.api.object(applicationSet, "argocd/tenants").SetFinalizers([]string{cascadeFinalizer})
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{
		releasesOther, deletesOther,
		"DELETE Application argocd/root Background",
		"DELETE Application argocd/apps Background",
		"PATCH ApplicationSet argocd/tenants " + releases, "DELETE ApplicationSet argocd/tenants Orphan",
		"PATCH Application argocd/team " + releases, "DELETE Application argocd/team Background",
	}, f.api.requests)
	assert.Empty(t, f.api.made, "nothing was made again")
}

func TestRelease_DeletesAnApplicationThatASyncMakesAgain(t *testing.T) {
	f := newFixture(t)
	once := false
	f.api.onRequest = func(request string) bool {
		if request == "GET "+applications && len(f.api.Objects[applications]) == 0 && !once {
			once = true
			f.api.add(f.api.Decode(`{kind: Application, metadata: {name: apps, namespace: argocd, ` + cascading + `}}`))
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.True(t, once)
	assert.Equal(t, workloads, f.api.exists())
}

// A sync may give an Application its finalizer back after the finalizers were taken away: its deletion would then be a cascade.
func TestRelease_DoesNotDeleteAnApplicationThatHasAFinalizerAgain(t *testing.T) {
	f := newFixture(t)
	times := 0
	f.api.onRequest = func(request string) bool {
		if other := f.api.object(application, "argocd/other"); request == "DELETE "+applications && other != nil && times < 3 {
			times++
			other.SetFinalizers([]string{cascadeFinalizer})
			f.api.store(other)
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, times)
	assert.Equal(t, workloads, f.api.exists())
}

func TestRelease_EndsACascadeThatHasBegun(t *testing.T) {
	f := newFixture(t)
	f.api.stuck["Application argocd/other"] = "is forbidden"
	f.api.delete(f.api.object(application, "argocd/other"), metav1.DeletePropagationBackground)
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workloads, f.api.exists())
	assert.Equal(t, releasesOther, f.api.requests[0])
	assert.NotContains(t, f.api.requests, deletesOther, "it has gone with its finalizers")
}

// Whoever has deleted the ApplicationSet did so with all that it has made.
func TestRelease_LetsApplicationsGoBeforeTheirApplicationSetThatIsBeingDeleted(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		f := newFixture(t)
		f.api.off = true
		set := f.api.object(applicationSet, "argocd/tenants")
		set.SetFinalizers([]string{cascadeFinalizer})
		f.api.delete(set, policy)
		_, err := f.run.run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, workloads, f.api.exists())
		team := slices.Index(f.api.requests, "PATCH Application argocd/team "+releases)
		assert.Less(t, team, slices.Index(f.api.requests, "PATCH ApplicationSet argocd/tenants "+releases))
		assert.GreaterOrEqual(t, team, 0)
	}
}

func TestRelease_DeletesApplicationsThatHaveAppliedEachOtherOrThemselves(t *testing.T) {
	f := newFixture(t)
	track := func(name, by string) {
		id := by + ":argoproj.io/Application:argocd/" + name
		f.api.object(application, "argocd/"+name).SetAnnotations(map[string]string{trackingAnnotation: id})
	}
	track("root", "root")
	track("team", "other")
	track("other", "team")
	f.api.object(application, "argocd/team").SetOwnerReferences(nil)
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workloads, f.api.exists())
	assert.Equal(t, "DELETE Application argocd/root Background", f.api.requests[0], "before what it has applied")
}

func TestRelease_TakesTheFinalizersOfProjectsAwayThatWouldKeepTheNamespace(t *testing.T) {
	f := newFixture(t)
	f.api.put(`{kind: AppProject, metadata: {name: default, namespace: argocd}}`)
	f.api.put(`{kind: AppProject, metadata: {name: team, namespace: argocd, ` + cascading + `}}`)
	f.api.put(`{kind: AppProject, metadata: {name: gone, namespace: argocd, ` + cascading + `}}`)
	f.api.delete(f.api.object(appProject, "argocd/gone"), metav1.DeletePropagationBackground)
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, append([]string{"AppProject argocd/default", "AppProject argocd/team"}, workloads...), f.api.exists())
	assert.Empty(t, f.api.object(appProject, "argocd/team").GetFinalizers())
	assert.Equal(t, []string{"PATCH AppProject argocd/gone " + releases, "PATCH AppProject argocd/team " + releases},
		f.api.requests[len(f.api.requests)-2:], "once no Application needs them")
}

func TestRun_WithoutArgoCDThereIsNothingToDo(t *testing.T) {
	for name, remove := range map[string]func(*api){
		"no CRD": func(a *api) {
			delete(a.Objects, applications)
			delete(a.Objects, applicationSets)
			delete(a.Objects, appProjects)
		},
		"no object": func(a *api) {
			clear(a.Objects[applications])
			clear(a.Objects[applicationSets])
		},
	} {
		for _, cascade := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t)
				f.spec.Delete = cascade
				remove(f.api)
				report, err := f.run.run(t.Context())
				require.NoError(t, err)
				assert.Empty(t, f.api.requests)
				assert.Equal(t, "Argo CD has nothing to remove", report.Sentence())
				assert.Equal(t, workloads, f.api.exists())
			})
		}
	}
}

func TestRun_AsksAgainAfterATemporaryError(t *testing.T) {
	f := newFixture(t)
	failed := map[string]bool{}
	f.api.onRequest = func(request string) bool {
		again := failed[request]
		failed[request] = true
		return !again
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Len(t, failed, 6, "three lists, a change and two deletions")
	assert.Equal(t, workloads, f.api.exists())
}

func TestRun_AtTheDeadlineSaysWhyTheServerWasAskedAgain(t *testing.T) {
	f := newFixture(t)
	f.Timeout = probe.Duration(100 * time.Millisecond)
	f.api.onRequest = func(request string) bool { return strings.HasPrefix(request, "PATCH") }
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "not done within 100ms")
	require.ErrorContains(t, err, "internalerror")
	assert.Equal(t, 1, strings.Count(f.progress.String(), "asks again: internalerror\n"), "it says it once")
}

func TestRun_EndsWithAnInterrupt(t *testing.T) {
	for _, cascade := range []bool{false, true} {
		f := newFixture(t)
		f.spec.Delete = cascade
		ctx, interrupt := context.WithCancel(t.Context())
		f.api.onRequest = func(request string) bool {
			if strings.HasPrefix(request, "PATCH") {
				interrupt()
			}
			return false
		}
		_, err := f.run.run(ctx)
		require.ErrorIs(t, err, context.Canceled)
	}
}
