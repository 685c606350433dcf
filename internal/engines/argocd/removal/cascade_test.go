package removal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/internal/probe"
)

// newCascade is newFixture for a run with Spec.Delete.
func newCascade(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.spec.Delete = true
	return f
}

const (
	equips      = `{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}`
	deletesRoot = "DELETE Application argocd/root Foreground"
	terminates  = `{"metadata":{},"status":{"operationState":{"phase":"Terminating"}}}`
	otherStays  = "what Application argocd/other has applied: that is not below Application argocd/root"
)

// left is what a complete removal leaves.
var left = []string{"Deployment coredns/coredns", "Deployment other/other"}

func TestCascade_RemovesEverythingBelowTheRootAndLetsTheOthersGoAlone(t *testing.T) {
	f := newCascade(t)
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Equal(t, []string{
		"PATCH Application argocd/apps " + equips, "PATCH Application argocd/root " + equips, deletesRoot, releasesOther, deletesOther,
	}, f.api.requests, "nothing is deleted before each Application has the finalizer")
	assert.Equal(t, []string{"Application argocd/apps", "Application argocd/root", "Application argocd/team", "ApplicationSet argocd/tenants"},
		report.Removed)
	assert.Equal(t, []string{"Application argocd/other"}, report.Released)
	assert.Equal(t, []string{otherStays}, report.Stays)
	assert.Empty(t, f.api.made, "nothing was made again")
	assert.Contains(t, f.progress.String(), "deletes Application argocd/root\n")
	assert.Contains(t, f.progress.String(), "waits for Argo CD: 4 objects are left; first: Application argocd/apps: is not being deleted "+
		"yet\n")
}

func TestCascade_KeepsTheFinalizersThatAnApplicationHas(t *testing.T) {
	f := newCascade(t)
	const background, own = cascadeFinalizer + "/background", "example.com/own"
	f.api.object(application, "argocd/apps").SetFinalizers([]string{background})
	f.api.object(application, "argocd/root").SetFinalizers([]string{own})
	f.api.onRequest = func(request string) bool {
		if root := f.api.object(application, "argocd/root"); root != nil && len(f.api.Objects[applications]) == 2 {
			f.api.drop(root, own) // as its controller does it at the end
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Equal(t, `PATCH Application argocd/root {"metadata":{"finalizers":["example.com/own","resources-finalizer.argocd.argoproj.io"]}}`,
		f.api.requests[0])
	assert.Equal(t, deletesRoot, f.api.requests[1])
}

// Argo CD deletes nothing while a sync runs, and the sync may wait for something that never becomes healthy.
func TestCascade_EndsASyncThatHoldsTheDeletionUp(t *testing.T) {
	f := newCascade(t)
	for _, name := range []string{"root", "team"} {
		o := f.api.object(application, "argocd/"+name).Object
		o["operation"] = map[string]any{"sync": map[string]any{}}
		require.NoError(t, unstructured.SetNestedField(o, "Running", "status", "operationState", "phase"))
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Subset(t, f.api.requests, []string{"PATCH Application argocd/root " + terminates, "PATCH Application argocd/team " + terminates})
	assert.Less(t, slices.Index(f.api.requests, deletesRoot), slices.Index(f.api.requests, "PATCH Application argocd/root "+terminates),
		"or Argo CD begins another one")
}

func TestCascade_LeavesWhatIsMarkedToStayAndAllBelow(t *testing.T) {
	const apps = "what Application argocd/apps has applied: "
	mark := func(kind, name, key, value string) func(*api) {
		return func(a *api) {
			o := a.object(kind, name)
			annotations := o.GetAnnotations()
			annotations[key] = value
			o.SetAnnotations(annotations)
		}
	}
	for want, test := range map[string]struct {
		change func(*api)
		stays  []string
	}{
		apps + "Application argocd/apps has argocd.argoproj.io/sync-options: Delete=false": {
			mark(application, "argocd/apps", optionsAnnotation, "Prune=false, Delete=false"), []string{"Deployment web/web"},
		},
		apps + "Application argocd/apps has helm.sh/resource-policy: keep": {
			mark(application, "argocd/apps", policyAnnotation, "keep"), []string{"Deployment web/web"},
		},
		apps + "Application argocd/root has spec.syncPolicy.syncOptions: Delete=false": {func(a *api) {
			_ = unstructured.SetNestedStringSlice(a.object(application, "argocd/root").Object, []string{"Delete=false"}, "spec", "syncPolicy",
				"syncOptions")
		}, []string{"Deployment dns/dns", "Deployment team/team", "Deployment web/web"}},
		"what ApplicationSet argocd/tenants has applied: ApplicationSet argocd/tenants has argocd.argoproj.io/sync-options: Delete=false": {
			mark(applicationSet, "argocd/tenants", optionsAnnotation, "Delete=false"), []string{"Deployment team/team"},
		},
		"what Application argocd/team has applied: ApplicationSet argocd/tenants has spec.syncPolicy.preserveResourcesOnDeletion: true": {
			func(a *api) {
				_ = unstructured.SetNestedField(a.object(applicationSet, "argocd/tenants").Object, true, "spec", "syncPolicy",
					"preserveResourcesOnDeletion")
				a.object(application, "argocd/team").SetFinalizers(nil)
			}, []string{"Deployment team/team"},
		},
	} {
		t.Run(want, func(t *testing.T) {
			f := newCascade(t)
			test.change(f.api)
			report, err := f.run.run(t.Context())
			require.NoError(t, err)
			assert.Contains(t, report.Stays, want)
			assert.Contains(t, f.progress.String(), "stays: "+want)
			all := slices.Concat(test.stays, left)
			slices.Sort(all)
			assert.Equal(t, all, f.api.exists(), "and no Application")
		})
	}
}

func TestCascade_AtTheDeadlineNamesWhatIsStuckAndWhatShowsMore(t *testing.T) {
	f := newCascade(t)
	f.Timeout = probe.Duration(time.Second)
	f.api.stuck["Application argocd/team"] = "cannot delete: password=hunter2\nis wrong"
	f.api.object("Deployment", "web/web").SetFinalizers([]string{"example.com/own"})
	_, err := f.run.run(t.Context())
	const describe = "; kubectl --context admin@infra -n argocd describe "
	require.ErrorContains(t, err, strings.Join([]string{
		"not done within 1s; still there:",
		"Application argocd/apps: is being deleted; waits for Deployment web/web, which has the finalizers example.com/own" + describe +
			"applications.argoproj.io apps shows more",
		"Application argocd/root: is being deleted; waits for Application argocd/apps, which has the finalizers " + cascadeFinalizer +
			", ApplicationSet argocd/tenants, which has the finalizers foregroundDeletion" + describe + "applications.argoproj.io root shows more",
		"Application argocd/team: is being deleted; DeletionError: cannot delete: password=(hidden) is wrong; waits for Deployment team/team, " +
			"which is not being deleted" + describe + "applications.argoproj.io team shows more",
		"ApplicationSet argocd/tenants: is being deleted" + describe + "applicationsets.argoproj.io tenants shows more",
		"Argo CD's log: kubectl --context admin@infra -n argocd logs --selector=app.kubernetes.io/name=argocd-application-controller --tail=50",
	}, "\n"))
	assert.Contains(t, f.api.exists(), "Application argocd/other", "nothing was let go")
	assert.Contains(t, f.progress.String(), "4 objects are left")
}

func TestCascade_SaysWhichDeletionMustBeConfirmed(t *testing.T) {
	f := newCascade(t)
	f.Timeout = probe.Duration(300 * time.Millisecond)
	f.api.stuck["Application argocd/apps"] = "not approved"
	apps := f.api.object(application, "argocd/apps").Object
	resources, _, _ := unstructured.NestedSlice(apps, "status", "resources")
	resources[0].(map[string]any)["requiresDeletionConfirmation"] = true
	require.NoError(t, unstructured.SetNestedSlice(apps, resources, "status", "resources"))
	_, err := f.run.run(t.Context())
	require.ErrorContains(t, err, "Application argocd/apps: waits until the deletion of Deployment web/web is confirmed: kubectl --context "+
		`admin@infra -n argocd annotate applications.argoproj.io apps --overwrite argocd.argoproj.io/deletion-approved=`+
		`"$(date -u +%Y-%m-%dT%H:%M:%SZ)"`)
}

func TestCascade_WaitsForAnotherCascadeThatHasBegun(t *testing.T) {
	f := newCascade(t)
	f.api.delete(f.api.object(application, "argocd/other"), metav1.DeletePropagationBackground)
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"Deployment coredns/coredns"}, f.api.exists())
	assert.Contains(t, report.Removed, "Application argocd/other")
	assert.Empty(t, report.Stays)
}

func TestCascade_RemovesWhatIsBelowARootThatDoesNotExist(t *testing.T) {
	f := newCascade(t)
	delete(f.api.Objects[applications], "argocd/root")
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"Deployment coredns/coredns", "Deployment dns/dns", "Deployment other/other"}, f.api.exists())
	assert.Contains(t, report.Stays, "what Application argocd/root has applied besides Applications: it does not exist any more")
	assert.Equal(t, []string{"Application argocd/apps", "Application argocd/team", "ApplicationSet argocd/tenants"}, report.Removed)
}

func TestCascade_DeletesTheRootThoughAnotherApplicationHasAppliedIt(t *testing.T) {
	f := newCascade(t)
	f.api.object(application, "argocd/root").SetAnnotations(map[string]string{trackingAnnotation: "other:argoproj.io/Application:argocd/root"})
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Equal(t, deletesRoot, f.api.requests[2], "and Argo CD deletes the others")
	assert.Len(t, f.api.requests, 5)
}

// An Application that a sync makes while the others get their finalizers needs one, too.
func TestCascade_GivesTheFinalizerToAnApplicationThatAppearsLater(t *testing.T) {
	f := newCascade(t)
	once := false
	f.api.onRequest = func(request string) bool {
		if request == "PATCH "+applications && !once {
			once = true
			f.api.git["late"] = []string{deployment("late")}
			late := f.api.Decode(`{kind: Application, metadata: {name: late, namespace: argocd}}`)
			f.api.add(f.api.owned(late, f.api.object(application, "argocd/root")))
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.True(t, once)
	assert.Equal(t, left, f.api.exists())
}

func TestCascade_DeletesNothingWhileAnApplicationLacksTheFinalizer(t *testing.T) {
	f := newCascade(t)
	f.api.object(application, "argocd/root").SetFinalizers([]string{cascadeFinalizer})
	times := 0
	f.api.onRequest = func(request string) bool {
		if request == "PATCH "+applications && times < 3 { // Argo CD writes its status first, so that the change is refused
			times++
			f.api.store(f.api.object(application, "argocd/apps"))
		}
		return false
	}
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, left, f.api.exists())
	assert.Equal(t, []string{"PATCH Application argocd/apps " + equips, deletesRoot}, f.api.requests[:2])
}

func TestCascade_FinishesWhatAKilledRunBegan(t *testing.T) {
	for rounds := range 9 {
		f := newCascade(t)
		for _, name := range []string{"root", "apps"} {
			f.api.object(application, "argocd/"+name).SetFinalizers([]string{cascadeFinalizer})
		}
		f.api.delete(f.api.object(application, "argocd/root"), metav1.DeletePropagationForeground)
		for range rounds {
			f.api.reconcile()
		}
		_, err := f.run.run(t.Context())
		require.NoError(t, err, rounds)
		assert.Equal(t, left, f.api.exists(), rounds)
		assert.NotContains(t, f.api.requests, deletesRoot, "it is being deleted")
	}
}

func TestCascade_ASecondRunHasNothingToDo(t *testing.T) {
	f := newCascade(t)
	_, err := f.run.run(t.Context())
	require.NoError(t, err)
	report, err := f.run.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Argo CD has nothing to remove", report.Sentence())
}
