package handover

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
)

// asked returns the names of the Applications that have to be asked.
func (seen *Cluster) asked() (names []string) {
	due, _ := seen.ToAsk()
	for _, one := range due {
		names = append(names, one.Name)
	}
	return names
}

func TestRefresh_BeginsOnceTheControllersRunWithTheTreeThatIsThere(t *testing.T) {
	spec, seen := declared(), applied()
	seen.Refreshes, seen.Fetched, seen.Held = nil, nil, nil
	assert.False(t, health.Hold(Evaluate(spec, seen)), "what was compared before does not count")
	assert.Empty(t, problems(Evaluate(spec, seen)), "nothing is wrong yet")

	seen.pull(1)
	assert.False(t, seen.Begins(spec))
	seen.Pods.Items[1].Ready = true
	seen.Applications.Synced = false
	assert.False(t, seen.Begins(spec))
	seen.Applications.Synced, seen.LookOnly = true, true
	assert.False(t, seen.Begins(spec))
	seen.LookOnly = false
	require.True(t, seen.Begins(spec))
	_, done := seen.ToAsk()
	assert.False(t, done, "it has not begun")
	seen.Begin(spec)
	assert.False(t, seen.Begins(spec))
	assert.Equal(t, []string{"root", "infrastructure", "cert-manager"}, seen.asked())
}

func TestRefresh_CountsOnlyOnceItWasSeenAndAnswered(t *testing.T) {
	spec, seen := declared(), applied()
	seen.Refreshes, seen.Fetched, seen.Held = nil, nil, nil
	seen.Begin(spec)
	for _, name := range []string{"root", "infrastructure", "cert-manager"} {
		seen.Refreshes["argocd/"+name] = Refresh{Version: "11"}
	}
	seen.Note(spec)
	assert.False(t, health.Hold(Evaluate(spec, seen)), "the watch is behind")
	assert.Empty(t, seen.Fetched)
	_, done := seen.ToAsk()
	assert.True(t, done)
	for _, place := range []int{atRoot, atInfrastructure, atCertManager} {
		seen.at(place).Version, seen.at(place).Refreshing = "11", true
	}
	seen.Note(spec)
	assert.False(t, health.Hold(Evaluate(spec, seen)), "the request is pending")
	for _, place := range []int{atRoot, atInfrastructure, atCertManager} {
		seen.at(place).Version, seen.at(place).Refreshing = "100", false // longer, and greater
	}
	seen.Note(spec)
	assert.True(t, health.Hold(Evaluate(spec, seen)), "%v", Evaluate(spec, seen))
	assert.Equal(t, []string{sha}, seen.Fetched)
	seen.at(atRoot).Refreshing = true
	seen.Note(spec)
	assert.True(t, health.Hold(Evaluate(spec, seen)), "the webhook of Git has asked it again")
}

func TestRefresh_OfSomebodyElseIsAnsweredFirst(t *testing.T) {
	spec, seen := declared(), applied()
	seen.Refreshes = nil
	seen.at(atInfrastructure).Refreshing = true
	seen.Begin(spec)
	assert.Equal(t, []string{"root", "cert-manager"}, seen.asked())
	seen.at(atInfrastructure).Refreshing = false
	assert.Equal(t, []string{"root", "infrastructure", "cert-manager"}, seen.asked())
}

func TestRefresh_IsNotNeededByAnApplicationThatCameLater(t *testing.T) {
	spec, seen := declared(), applied()
	seen.at(atOther).Tracker, seen.at(atOther).Health = "root", healthy
	seen.at(atOther).Sources[0].URL = "https://git.home.arpa/other.git"
	assert.True(t, health.Hold(Evaluate(spec, seen)))
	seen.at(atOther).Sync, seen.at(atOther).Refreshing = "", true
	assert.False(t, health.Hold(Evaluate(spec, seen)), "it has not compared at all")
}

func TestRefresh_ThatIsRefusedIsTheReason(t *testing.T) {
	seen := applied()
	seen.Refreshes["argocd/cert-manager"] = Refresh{Err: &health.Broken{Reason: "applications.argoproj.io is forbidden", Hopeless: true}}
	failed := problems(Evaluate(declared(), seen))
	require.Len(t, failed, 1)
	assert.Equal(t, "cannot be asked to compare anew: applications.argoproj.io is forbidden", failed[0].Reason)
	assert.True(t, failed[0].Hopeless)
	assert.Contains(t, failed[0].Command, "annotate application cert-manager argocd.argoproj.io/refresh=hard")
}

func TestRefresh_SaysWhatWasWrongBefore(t *testing.T) {
	seen := applied()
	seen.at(atRoot).breaks()
	seen.Refreshes["argocd/root"] = Refresh{Version: "11"}
	assert.Contains(t, problems(Evaluate(declared(), seen))[0].Reason,
		"has not compared yet since it was asked to; before: ComparisonError: Failed to load target state")
}

func TestHandover_ThatOnlyLooksJudgesTheNewestComparisons(t *testing.T) {
	spec, seen := declared(), applied()
	seen.Refreshes, seen.Fetched, seen.Held, seen.LookOnly = nil, nil, nil, true
	seen.Note(spec)
	assert.True(t, health.Hold(Evaluate(spec, seen)), "%v", Evaluate(spec, seen))
	seen.at(atInfrastructure).Refreshing = true
	assert.False(t, health.Hold(Evaluate(spec, seen)))
	seen.at(atInfrastructure).Refreshing, seen.Held = false, nil
	seen.at(atInfrastructure).Sources[0].Revision = "0000"
	seen.Note(spec)
	assert.Equal(t, "has compared with 0000, the root with "+sha, problems(Evaluate(spec, seen))[0].Reason)
}

// A push while it waits: the root and what it applies follow one after the other, in any order.
func TestHandover_HoldsWhileTheRevisionMoves(t *testing.T) {
	spec, seen := declared(), applied()
	holds := func(why string) {
		t.Helper()
		seen.Note(spec)
		assert.True(t, health.Hold(Evaluate(spec, seen)), "%s: %v", why, problems(Evaluate(spec, seen)))
	}
	before := sha
	for _, digit := range []string{"2", "3", "4"} {
		root, child, revision := seen.at(atRoot), seen.at(atInfrastructure), strings.Repeat(digit, 40)
		root.Refreshing, child.Refreshing = true, true
		holds("the webhook of Git asks them to compare")
		child.Sources[0].Revision, child.Refreshing, child.Sync = revision, false, outOfSync
		holds("a child is ahead of the root")
		child.runs("waiting for healthy state of apps/Deployment/podinfo", waits(child.Resources[0].Object, running))
		child.ails(0, "Progressing", "")
		holds("and does it")
		root.Sources[0].Revision, root.Refreshing, root.Sync = revision, false, outOfSync
		holds("the root has found it, too")
		assert.Equal(t, "refs/heads/main@sha1:"+before, seen.AppliedRevision(spec), "the newest is not applied yet")
		root.runs("")
		holds("the root applies it")
		assert.False(t, health.Hold(broken(seen, func(child *Application) { child.ails(0, "Degraded", "") })), "the push broke it")
		assert.False(t, health.Hold(broken(seen, func(child *Application) { child.ends("denied") })), "the push broke its sync")
		assert.False(t, health.Hold(broken(seen, func(child *Application) { child.breaks() })), "the push broke its manifests")
		assert.False(t, health.Hold(broken(seen, func(child *Application) { child.Sync = "Unknown" })), "nobody knows")
		assert.False(t, health.Hold(broken(seen, func(child *Application) { child.refuses("would wipe out all") })), "it has no manifests")
		root.Sync, child.Sync, root.Operation, child.Operation = synced, synced, Operation{}, Operation{}
		child.Health, child.Resources[0].Health = healthy, healthy
		holds("all is applied")
		assert.Equal(t, "refs/heads/main@sha1:"+revision, seen.AppliedRevision(spec))
		before = revision
	}
	assert.Len(t, seen.Fetched, 4)
}

// broken evaluates with a change of a child, which is undone.
func broken(seen *Cluster, change func(child *Application)) []health.Result {
	before := *seen.at(atInfrastructure)
	defer func() { *seen.at(atInfrastructure) = before }()
	copied := before
	copied.Resources, copied.Sources = append([]Resource(nil), before.Resources...), append([]Source(nil), before.Sources...)
	change(&copied)
	*seen.at(atInfrastructure) = copied
	return Evaluate(declared(), seen)
}

func TestHandover_HoldsIfAChildHasAppliedANewerRevisionThanTheRoot(t *testing.T) {
	seen := applied()
	seen.at(atInfrastructure).Sources[0].Revision = next
	assert.True(t, health.Hold(Evaluate(declared(), seen)), "it was at the revision of the root since the wait began")
	seen.Note(declared())
	assert.Equal(t, next, seen.Held["argocd/infrastructure"])
	seen.Held = nil
	assert.False(t, health.Hold(Evaluate(declared(), seen)), "it may be older")
}

func TestHandover_AnApplicationThatANewerRevisionAddsIsNotMissed(t *testing.T) {
	spec, seen := declared(), applied()
	root := seen.at(atRoot)
	root.Sources[0].Revision, root.Sync = next, outOfSync
	root.Resources = append(root.Resources, Resource{Object: Object{group, kind, "argocd", "added"}, Sync: outOfSync})
	seen.Note(spec)
	assert.True(t, health.Hold(Evaluate(spec, seen)), "%v", problems(Evaluate(spec, seen)))
}

func TestHandover_ARevisionThatWasNeverHealthyDoesNotCountAsMoving(t *testing.T) {
	spec, seen := declared(), applied()
	seen.Fetched, seen.Held = nil, nil
	root := seen.at(atRoot)
	root.runs("waiting for healthy state of argoproj.io/Application/infrastructure")
	seen.Note(spec)
	root.Sources[0].Revision = next
	seen.Note(spec)
	assert.Equal(t, []string{sha, next}, seen.Fetched)
	assert.False(t, health.Hold(Evaluate(spec, seen)))
	drifted := applied()
	drifted.at(atRoot).drifts(0)
	drifted.Note(spec)
	assert.False(t, health.Hold(Evaluate(spec, drifted)), "the revision is the same: somebody has changed the cluster")
}

func TestHandover_ARevisionOfTheFormerRepositoryOrOfAFailedComparisonDoesNotCount(t *testing.T) {
	spec, seen := declared(), applied()
	seen.Fetched, seen.Held = nil, nil
	seen.at(atRoot).Sources[0].URL = "https://git.home.arpa/other.git"
	seen.Note(spec)
	assert.Empty(t, seen.Fetched)
	seen.at(atRoot).Sources[0].URL = repo
	seen.at(atRoot).breaks()
	seen.Note(spec)
	assert.Empty(t, seen.Fetched, "its revision is the name of the branch then")
	assert.Empty(t, seen.AppliedRevision(spec))
	blocked := Evaluate(spec, seen)
	assert.Len(t, problems(blocked), 1, "the root is the cause: %v", problems(blocked))
}

func TestAppliedRevision_HasTheFormOfFlux(t *testing.T) {
	for source, want := range map[Source]string{
		{Ref: "main", Revision: sha}:              "refs/heads/main@sha1:" + sha,
		{Ref: "refs/heads/main", Revision: sha}:   "refs/heads/main@sha1:" + sha,
		{Revision: sha}:                           "HEAD@sha1:" + sha,
		{Ref: "main", Revision: next + next[:24]}: "refs/heads/main@sha256:" + next + next[:24],
		{Ref: "1.2.x", Revision: "1.2.3"}:         "1.2.x@1.2.3",
		{Ref: "main"}:                             "",
	} {
		seen := applied()
		seen.at(atRoot).Sources = []Source{source}
		assert.Equal(t, want, seen.AppliedRevision(declared()))
	}
	assert.Empty(t, new(Cluster).AppliedRevision(declared()))
}

// restarts returns the names of the Applications whose sync has to begin again.
func (seen *Cluster) restarts() (names []string) {
	for _, one := range seen.ToRestart(declared()) {
		names = append(names, one.Name)
	}
	return names
}

func TestRestart_BeginsAgainOnceWhatFailedAndAlwaysWhatIsOfFormerSources(t *testing.T) {
	seen := applied()
	child := seen.at(atInfrastructure)
	for name, test := range map[string]struct {
		sync         Operation
		first, again bool
	}{
		"it succeeded":                       {Operation{Phase: "Succeeded"}, false, false},
		"it succeeded with former sources":   {Operation{Phase: "Succeeded", Former: true}, false, false},
		"it failed":                          {Operation{Phase: failed}, true, false},
		"Argo CD failed":                     {Operation{Phase: failedByArgo}, true, false},
		"it is tried again":                  {Operation{Phase: running, Retries: true}, true, false},
		"it runs":                            {Operation{Phase: running}, false, false},
		"it runs with former sources":        {Operation{Phase: running, Former: true}, true, true},
		"it is tried with former sources":    {Operation{Phase: running, Retries: true, Former: true}, true, true},
		"it ends already":                    {Operation{Phase: terminating, Former: true}, false, false},
		"there was none":                     {Operation{}, false, false},
		"it failed with former sources once": {Operation{Phase: failed, Former: true}, true, false},
	} {
		seen.Restarted, child.Operation = nil, test.sync
		assert.Equal(t, test.first, len(seen.restarts()) == 1, name)
		seen.Restart(*child)
		assert.Equal(t, test.again, len(seen.restarts()) == 1, name)
	}
	seen.Restarted, child.Operation, child.Automated = nil, Operation{Phase: running, Retries: true}, false
	assert.Empty(t, seen.restarts(), "a person began it, and nothing else would begin another one")
	child.Automated = true
	child.Operation = Operation{Phase: failed}
	seen.Restarted = nil
	seen.Refreshes = nil
	assert.Empty(t, seen.restarts(), "Argo CD's controllers do not run yet")
	seen.Begin(declared())
	seen.LookOnly = true
	assert.Empty(t, seen.restarts(), "it only looks")
}
