package handover

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
)

func TestHandover_AnApplicationThatTheRootDidNotApplyIsNotJudged(t *testing.T) {
	seen := applied()
	require.Equal(t, "Degraded", seen.at(atOther).Health)
	assert.True(t, health.Hold(Evaluate(declared(), seen)))
	seen.at(atOther).Tracker = "root" // the status of the root may not list it yet
	assert.False(t, health.Hold(Evaluate(declared(), seen)))
}

func TestTree_HasWhatResourcesTrackingIdsAndApplicationSetsTell(t *testing.T) {
	seen := &Cluster{Applications: health.Seen[Application]{Synced: true, Items: []Application{
		app("root", "", Resource{Object: Object{group, kind, "argocd", "listed"}},
			Resource{Object: Object{group, "ApplicationSet", "argocd", "set"}},
			Resource{Object: Object{group, kind, "argocd", "absent"}}, Resource{Object: Object{group, kind, "argocd", "pruned"}, Prune: true},
			Resource{Object: Object{group, kind, "argocd", "hook"}, Hook: true},
			Resource{Object: Object{"app.k8s.io", kind, "argocd", "of-another-group"}}),
		app("listed", "", Resource{Object: Object{group, kind, "argocd", "root"}}), // a circle
		app("tracked", ""), app("made", ""), app("below", ""), app("of-another-group", ""), app("of-another-set", ""), app("hook", ""),
	}}}
	seen.at(2).Tracker, seen.at(3).Set, seen.at(6).Set = "root", "argocd/set", "argocd/other"
	seen.at(4).Tracker, seen.at(4).Namespace = "argocd_tracked", "tenant"
	var names []string
	all := seen.tree(declared())
	for _, one := range all.members {
		names = append(names, one.Name)
	}
	assert.Equal(t, []string{"root", "listed", "tracked", "made", "below"}, names)
	assert.Equal(t, 2, all.members[4].parent)
	require.Len(t, all.absent, 1)
	assert.Equal(t, "absent", all.absent[0].Name)

	seen.at(atRoot).InCluster = false
	assert.Len(t, seen.tree(declared()).members, 1, "what it applies is in another cluster")
}

func TestHandover_AWorkloadOfAnotherClusterIsNoCause(t *testing.T) {
	for inCluster, has := range map[bool]bool{true: true, false: false} {
		seen := applied()
		seen.at(atCertManager).ails(0, "Progressing", "")
		seen.at(atCertManager).InCluster = inCluster
		seen.pull(3)
		failed := problems(Evaluate(declared(), seen))
		require.Len(t, failed, 1)
		assert.Equal(t, has, len(failed[0].Evidence) > 1, "%v", failed[0])
	}
}

func TestHandover_WithoutStoredHealthTheWorkloadIsFoundAllTheSame(t *testing.T) {
	seen := applied()
	for _, place := range []int{atRoot, atInfrastructure, atCertManager} {
		for i := range seen.at(place).Resources {
			seen.at(place).Resources[i].Health = ""
		}
		seen.at(place).Health = "Progressing"
	}
	seen.pull(3)
	failed := problems(Evaluate(declared(), seen))
	require.Len(t, failed, 1, "the others only wait for it")
	assert.Equal(t, "Application argocd/cert-manager", failed[0].Subject)
	assert.Contains(t, failed[0].Reason, "is Progressing; Deployment cert-manager/cert-manager: 0 of 1 pods are Ready")
}

func TestHandover_TheCauseIsAlwaysReported(t *testing.T) {
	// Each applies the other, and waits for it.
	seen := applied()
	root, child := seen.at(atRoot), seen.at(atInfrastructure)
	child.Resources = append(child.Resources, resource(group, kind, "argocd", "root"))
	root.runs("waiting for healthy state of argoproj.io/Application/infrastructure", waits(root.Resources[0].Object, running))
	child.runs("waiting for healthy state of argoproj.io/Application/root", waits(child.Resources[2].Object, running))
	assert.NotEmpty(t, problems(Evaluate(declared(), seen)))
}

func TestHandover_WhatAPersonSyncsOrSuspendsIsARemark(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Cluster)
		want   map[string]string
	}{
		"synced by hand": {
			func(c *Cluster) { c.at(atCertManager).drifts(0); c.at(atCertManager).Automated = false },
			map[string]string{"Application argocd/cert-manager": "is OutOfSync, and is synced by hand"},
		},
		"never synced": {
			func(c *Cluster) {
				c.at(atInfrastructure).drifts(1)
				c.at(atInfrastructure).Automated, c.at(atInfrastructure).Health = false, "Missing"
				c.Applications.Items = append(c.Applications.Items[:atCertManager], c.Applications.Items[atOther])
			},
			map[string]string{
				"Application argocd/infrastructure": "is OutOfSync, and is synced by hand",
				"Application argocd/cert-manager":   "Application argocd/infrastructure has not applied it, and is synced by hand",
			},
		},
		"suspended": {
			func(c *Cluster) {
				c.at(atCertManager).ails(0, suspended, "Deployment is paused")
				c.at(atInfrastructure).ails(1, suspended, "")
				c.at(atRoot).ails(0, suspended, "")
			},
			map[string]string{
				"Application argocd/cert-manager":   "is Suspended: Deployment cert-manager/cert-manager is Suspended: Deployment is paused",
				"Application argocd/infrastructure": "is Suspended: Application argocd/cert-manager is Suspended",
				"Application argocd/root":           "is Suspended: Application argocd/infrastructure is Suspended",
			},
		},
	} {
		seen := applied()
		c.change(seen)
		results := Evaluate(declared(), seen)
		assert.True(t, health.Hold(results), "%s: %v", name, results)
		assert.Equal(t, c.want, remarks(results), name)
	}
}

func TestHandover_ASyncByHandThatFailsIsAProblemOnlyWhileItRuns(t *testing.T) {
	seen := applied()
	child := seen.at(atCertManager)
	child.drifts(0)
	child.Automated = false
	child.ends("one or more objects failed to apply")
	assert.True(t, health.Hold(Evaluate(declared(), seen)))
	child.runs("")
	assert.False(t, health.Hold(Evaluate(declared(), seen)))
}

func TestHandover_AFailedSyncOfAnOlderRevisionCountsOnlyIfAHookFailed(t *testing.T) {
	seen := applied()
	child := seen.at(atInfrastructure)
	denied := Step{Object: child.Resources[0].Object, Status: syncFailed, Message: "denied"}
	child.ends("one or more objects failed to apply", denied)
	assert.False(t, health.Hold(Evaluate(declared(), seen)), "it is of the newest revision: hooks may not have run")
	child.Operation.Revisions = []string{"0000"}
	assert.True(t, health.Hold(Evaluate(declared(), seen)), "a newer revision is in sync without another sync")
	child.Operation.Steps[0].Hook = "PostSync"
	assert.False(t, health.Hold(Evaluate(declared(), seen)), "no newer revision has run the hook again")
	child.Operation.Steps[0].Hook = ""
	child.drifts(0)
	assert.False(t, health.Hold(Evaluate(declared(), seen)), "it is not in sync")
}
