package prune

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

const (
	patches  = `PATCH FluxInstance flux-system/flux `
	suspends = patches + `{"metadata":{"annotations":{"fluxcd.controlplane.io/reconcile":"disabled"}}}`
	resumes  = patches + `{"metadata":{"annotations":{"fluxcd.controlplane.io/reconcile":null}}}`
	releases = patches + `{"metadata":{"annotations":{"fluxcd.controlplane.io/reconcile":null}},"spec":{"sync":null}}`
	deletes  = "DELETE Kustomization flux-system/flux-system"
)

// left is what a complete removal leaves.
var left = []string{"Deployment kube-system/coredns", "FluxInstance flux-system/flux"}

func TestRun_RemovesEverythingBelowTheRootAndNothingElse(t *testing.T) {
	f := newFixture(t)
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Equal(t, []string{suspends, deletes, releases}, f.api.requests)
	assert.Equal(t, []string{"HelmRelease web/web", "Kustomization flux-system/apps", "Kustomization flux-system/flux-system"}, report.Removed)
	assert.Contains(t, f.progress.String(), "deletes Kustomization flux-system/flux-system\n")
	assert.Contains(t, f.progress.String(), "waits for Flux: 3 objects are left; first: HelmRelease web/web: is not being deleted yet")
}

// A FluxInstance that is resumed makes the root again before it is deleted, and a suspended one leaves Flux behind.
func TestRun_LeavesAFluxInstanceThatMakesNoRootAndCanBeDeleted(t *testing.T) {
	f := newFixture(t)
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	instance := f.api.instance()
	assert.Equal(t, map[string]string{"slipway-platform.github.io/cluster": "infra"}, instance.GetAnnotations(), "the others stay")
	assert.NotContains(t, instance.Object["spec"], "sync")
	assert.Zero(t, f.api.made)
}

func TestRun_WaitsForWhatIsStillBeingRemovedAfterItsOwnerIsGone(t *testing.T) {
	f := newFixture(t)
	const message = "uninstallation of web failed: timed out"
	f.api.stuck["HelmRelease web/web"] = message
	waited := false
	f.api.onRequest = func(request string) bool {
		if request == "GET "+helmReleases && len(f.api.Objects[kustomizations]) == 0 && !waited {
			waited = true
			delete(f.api.stuck, "HelmRelease web/web")
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.True(t, waited)
	assert.Equal(t, left, f.api.exists())
	assert.Contains(t, f.progress.String(), "HelmRelease web/web: is being deleted; Ready is False: UninstallFailed: "+message)
}

func TestRun_AtTheDeadlineNamesWhatIsStillThereAndResumesFlux(t *testing.T) {
	f := newFixture(t)
	f.Timeout = probe.Duration(time.Second)
	f.api.stuck["HelmRelease web/web"] = "uninstallation of web failed: password=hunter2 is wrong"
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "not done within 1s; still there:\n"+
		"HelmRelease web/web: is being deleted; Ready is False: UninstallFailed: uninstallation of web failed: password=(hidden) is wrong; "+
		"kubectl --context admin@infra -n web describe helmrelease web shows more")
	assert.NotContains(t, err.Error(), "Kustomization", "they are gone")
	assert.Equal(t, []string{suspends, deletes, resumes}, f.api.requests)
	assert.Contains(t, f.api.instance().Object["spec"], "sync", "Flux works as before")
	assert.Equal(t, 1, f.api.made)
}

func TestRun_AfterAnInterruptResumesFlux(t *testing.T) {
	f := newFixture(t)
	f.api.stuck["HelmRelease web/web"] = "still busy"
	ctx, interrupt := context.WithCancel(t.Context())
	f.api.onRequest = func(request string) bool {
		if len(f.api.Objects[kustomizations]) == 0 {
			interrupt()
		}
		return false
	}
	_, err := f.run.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, resumes, f.api.requests[len(f.api.requests)-1])
}

func TestRun_SaysThatFluxIsStillSuspendedIfThatCannotBeUndone(t *testing.T) {
	f := newFixture(t)
	f.Timeout = probe.Duration(100 * time.Millisecond)
	f.api.stuck["HelmRelease web/web"] = "still busy"
	f.api.onRequest = func(request string) bool { return len(f.api.requests) >= 2 && strings.HasPrefix(request, "PATCH") }
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "FluxInstance flux-system/flux: may still be suspended")
	require.ErrorContains(t, err, "kubectl --context admin@infra -n flux-system annotate fluxinstance flux fluxcd.controlplane.io/reconcile-")
}

// The answer to the suspension may have been lost.
func TestRun_ResumesFluxThoughItDoesNotKnowThatItIsSuspended(t *testing.T) {
	f := newFixture(t)
	f.Timeout = probe.Duration(100 * time.Millisecond)
	f.api.onRequest = func(request string) bool { return strings.HasPrefix(request, "PATCH") }
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "not done within 100ms")
	assert.Equal(t, 1, strings.Count(f.progress.String(), "asks again: internalerror\n"), "it says it once")
	require.ErrorContains(t, err, "FluxInstance flux-system/flux: may still be suspended")
	assert.Len(t, f.api.exists(), 7, "nothing was deleted")
}

func TestRun_FinishesWhatAKilledRunBegan(t *testing.T) {
	for at, killed := range map[string]func(*fixture){
		"before the root was deleted": func(f *fixture) { f.kill(0) },
		"while the root is deleted":   func(f *fixture) { f.kill(1) },
		"while a Kustomization is":    func(f *fixture) { f.kill(2) },
		"while a HelmRelease is":      func(f *fixture) { f.kill(3) },
		"after all was gone":          func(f *fixture) { f.kill(9) },
		"after the end":               func(f *fixture) { _, err := f.run.run(t.Context()); require.NoError(t, err) },
		"after Flux's CRDs were removed": func(f *fixture) {
			f.kill(9)
			delete(f.api.Objects, kustomizations)
			delete(f.api.Objects, helmReleases)
		},
	} {
		t.Run(at, func(t *testing.T) {
			f := newFixture(t)
			killed(f)
			_, err := f.run.run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, left, f.api.exists())
			assert.Empty(t, f.api.instance().GetAnnotations()[reconcileAnnotation])
			assert.Zero(t, f.api.made)
		})
	}
}

// kill leaves the cluster as a run does that is killed after the controllers have worked so many times; 0: before it deletes the root.
func (f *fixture) kill(rounds int) {
	f.api.mu.Lock()
	defer f.api.mu.Unlock()
	kubeapitest.Merge(f.api.Objects[fluxInstances]["flux-system/flux"].Object, suspension)
	if rounds > 0 {
		f.api.delete(f.api.Objects[kustomizations]["flux-system/flux-system"])
	}
	for range rounds - 1 {
		f.api.reconcile()
	}
}

func TestRun_WithoutFluxThereIsNothingToDo(t *testing.T) {
	f := newFixture(t)
	for _, resource := range []string{fluxInstances, kustomizations, helmReleases, resourceSets} {
		delete(f.api.Objects, resource)
	}
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Empty(t, f.api.requests)
	assert.Equal(t, "Flux has nothing to remove", report.Sentence())
}

func TestRun_DeletesARootThatAReconciliationHasMadeAgain(t *testing.T) {
	f := newFixture(t)
	once := false
	f.api.onRequest = func(request string) bool {
		if request == "GET "+kustomizations && len(f.api.Objects[kustomizations]) == 0 && !once {
			once = true
			f.api.Keep(f.api.Decode(`{kind: Kustomization, metadata: {name: flux-system, namespace: flux-system}, spec: {prune: true}}`))
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.True(t, once)
	assert.Equal(t, []string{suspends, deletes, deletes, releases}, f.api.requests)
}

func TestRun_DoesNotWaitForWhatStays(t *testing.T) {
	for title, test := range map[string]struct {
		stays   string
		objects []string
	}{
		"HelmRelease flux-system/cilium: has kustomize.toolkit.fluxcd.io/prune: disabled": {"HelmRelease flux-system/cilium", []string{
			`{kind: HelmRelease, metadata: {name: cilium, namespace: flux-system, annotations: {kustomize.toolkit.fluxcd.io/prune: Disabled},
  ` + by("apps") + `}}`}},
		"Kustomization flux-system/platform: has kustomize.toolkit.fluxcd.io/prune: disabled": {"HelmRelease flux-system/cilium", []string{
			`{kind: Kustomization, metadata: {name: platform, namespace: flux-system, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled},
  ` + by("flux-system") + `}, spec: {prune: true}, ` + inventory + `}`,
			`{kind: HelmRelease, metadata: {name: cilium, namespace: flux-system, ` + by("platform") + `}}`,
		}},
		"what Kustomization flux-system/data has applied: that has spec.prune: false": {"HelmRelease data/database", []string{
			`{kind: Kustomization, metadata: {name: data, namespace: flux-system, ` + by("flux-system") + `},
  spec: {prune: false}, ` + inventory + `}`,
			`{kind: HelmRelease, metadata: {name: database, namespace: data, ` + by("data") + `}}`,
		}},
		"what Kustomization flux-system/data has applied: that has spec.deletionPolicy: Orphan": {"HelmRelease data/database", []string{
			`{kind: Kustomization, metadata: {name: data, namespace: flux-system, ` + by("flux-system") + `},
  spec: {prune: true, deletionPolicy: Orphan}, ` + inventory + `}`,
			`{kind: HelmRelease, metadata: {name: database, namespace: data, ` + by("data") + `}}`,
		}},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFixture(t)
			for _, object := range test.objects {
				f.api.put(object)
			}
			report, err := f.run.run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []string{title}, report.Stays)
			assert.Contains(t, f.progress.String(), "stays: "+title)
			assert.Contains(t, f.api.exists(), test.stays)
			assert.NotContains(t, f.api.exists(), "HelmRelease web/web")
		})
	}
}

func TestRun_FollowsAResourceSetToWhatItHasApplied(t *testing.T) {
	f := newFixture(t)
	f.api.put(`{kind: ResourceSet, metadata: {name: tenants, namespace: flux-system, ` + by("apps") + `}, ` + inventory + `}`)
	f.api.put(`{kind: HelmRelease, metadata: {name: team, namespace: team, labels: {resourceset.fluxcd.controlplane.io/name: tenants,
  resourceset.fluxcd.controlplane.io/namespace: flux-system}}}`)
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Subset(t, report.Removed, []string{"ResourceSet flux-system/tenants", "HelmRelease team/team"})
}

// The kinds are read one after the other. Here a Kustomization goes between the list of ResourceSets and that of Kustomizations, so that
// the ResourceSet seems to be neither below the root nor being deleted.
func TestRun_ALookThatMissesSomethingIsNotTheEnd(t *testing.T) {
	f := newFixture(t)
	delete(f.api.Objects[helmReleases], "web/web")
	delete(f.api.Objects[deployments], "web/web")
	f.api.put(`{kind: ResourceSet, metadata: {name: tenants, namespace: flux-system, ` + by("apps") + `}, ` + inventory + `}`)
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
}

func TestRun_RefusesBeforeItDeletesAnythingWhatWouldLeaveSomething(t *testing.T) {
	const root, apps = "Kustomization flux-system/flux-system: ", "Kustomization flux-system/apps: "
	for problem, change := range map[string]func(*api){
		apps + `is suspended, and would leave what it has applied; resume it, in Git if it is suspended there: ` +
			`kubectl --context admin@infra -n flux-system patch kustomization apps --type=merge -p '{"spec":{"suspend":false}}'`: func(a *api) {
			set(a, kustomizations, "flux-system/apps", true, "spec", "suspend")
		},
		root + "is suspended": func(a *api) { set(a, kustomizations, "flux-system/flux-system", true, "spec", "suspend") },
		"HelmRelease web/web: is suspended, and would leave": func(a *api) {
			set(a, helmReleases, "web/web", true, "spec", "suspend")
		},
		root + `has spec.prune: false, with which Flux removes nothing; take that back: ` +
			`kubectl --context admin@infra -n flux-system patch kustomization flux-system --type=merge ` +
			`-p '{"spec":{"prune":true,"deletionPolicy":null}}'`: func(a *api) {
			set(a, kustomizations, "flux-system/flux-system", false, "spec", "prune")
		},
		root + "has spec.deletionPolicy: Orphan": func(a *api) {
			set(a, kustomizations, "flux-system/flux-system", "Orphan", "spec", "deletionPolicy")
		},
		root + "has no inventory yet, and would leave what it has applied, such as " + strings.TrimSuffix(apps, ": "): func(a *api) {
			a.put(`{kind: Kustomization, metadata: {name: flux-system, namespace: flux-system}, spec: {prune: true}}`)
		},
		apps + "was applied by Kustomization flux-system/flux-system, which does not exist, so that nothing would remove it": func(a *api) {
			delete(a.Objects[kustomizations], "flux-system/flux-system")
		},
	} {
		t.Run(problem, func(t *testing.T) {
			f := newFixture(t)
			change(f.api)
			before := f.api.exists()
			_, err := f.run.run(t.Context())
			require.ErrorContains(t, err, "nothing was deleted: ")
			require.ErrorContains(t, err, problem)
			assert.Subset(t, f.api.exists(), before)
			assert.Equal(t, []string{suspends, resumes}, f.api.requests)
		})
	}
}

func set(a *api, resource, name string, value any, path ...string) {
	o := a.Objects[resource][name].Object
	for _, field := range path[:len(path)-1] {
		o = o[field].(map[string]any)
	}
	o[path[len(path)-1]] = value
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
	assert.Len(t, failed, 5)
	assert.Equal(t, left, f.api.exists())
}
