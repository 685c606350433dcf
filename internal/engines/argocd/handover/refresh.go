package handover

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/slipway-platform/slipway/internal/health"
)

// The annotation that asks Argo CD to compare an Application anew. Its controller removes the annotation with the comparison's result. The
// value hard makes it fetch Git and render the manifests again instead of taking them from its caches.
const (
	RefreshAnnotation = "argocd.argoproj.io/refresh"
	RefreshHard       = "hard"
)

// Refresh is the request to an Application to compare anew. The zero value was not sent yet.
type Refresh struct {
	Version  string         // resourceVersion of the Application with the request; "" before
	Answered bool           // the Application has compared since
	Err      *health.Broken // why it cannot be asked
}

// Begins reports whether Begin has to be called: Argo CD's controllers run, and the Applications were read.
func (seen *Cluster) Begins(spec *Spec) bool {
	return !seen.LookOnly && seen.Refreshes == nil && seen.Applications.Synced && seen.Applications.Err == nil && seen.controllers(spec)
}

// Begin decides that the root and all Applications below it are asked to compare anew.
func (seen *Cluster) Begin(spec *Spec) {
	seen.Refreshes = map[string]Refresh{}
	for _, app := range seen.tree(spec).members {
		seen.Refreshes[app.Key()] = Refresh{}
	}
}

// ToAsk returns the Applications that have to be asked now; done is true once all were. One that somebody else has asked answers that
// first: an answer to two requests may come from a comparison that began before the second.
func (seen *Cluster) ToAsk() (apps []Application, done bool) {
	done = seen.Refreshes != nil
	for _, app := range seen.Applications.Items {
		if refresh, asks := seen.Refreshes[app.Key()]; asks && refresh.Version == "" {
			done = false
			if !app.Refreshing {
				apps = append(apps, app)
			}
		}
	}
	return apps, done
}

// ToRestart returns the Applications of the tree whose sync has to begin again now. Argo CD goes on with a sync of former sources, for as
// long as it is tried again or waits for an object: see newSyncOperationResult in its controller/sync.go. And it does not begin again by
// itself what failed at a revision for the last time.
func (seen *Cluster) ToRestart(spec *Spec) (apps []Application) {
	if seen.LookOnly || seen.Refreshes == nil {
		return nil
	}
	for _, one := range seen.tree(spec).members {
		sync := one.Operation
		gaveUp := sync.Retries || sync.Phase == failed || sync.Phase == failedByArgo
		switch {
		case one.Deleting || sync.Phase == terminating || !one.Automated: // what a person began is the person's
		case sync.Former && (sync.Retries || sync.Phase == running), gaveUp && !seen.Restarted[one.Key()]:
			apps = append(apps, one.Application)
		}
	}
	return apps
}

// Restart notes that the sync of an Application was begun again.
func (seen *Cluster) Restart(app Application) {
	if seen.Restarted == nil {
		seen.Restarted = map[string]bool{}
	}
	seen.Restarted[app.Key()] = true
}

// Waits reports whether a sync is at work, so that Argo CD has to end it.
func (o Operation) Waits() bool { return o.Phase == running && !o.Retries }

// noteAnswers notes which Applications have compared since they were asked.
func (seen *Cluster) noteAnswers() {
	for _, app := range seen.Applications.Items {
		refresh, asked := seen.Refreshes[app.Key()]
		if asked && !refresh.Answered && refresh.Version != "" && !app.Refreshing && reached(app.Version, refresh.Version) {
			refresh.Answered = true
			seen.Refreshes[app.Key()] = refresh
		}
	}
}

// reached reports whether an object was seen at a version or a newer one: the watch may be behind the answer to the request.
func reached(version, of string) bool {
	order, err := resourceversion.CompareResourceVersion(version, of)
	return err == nil && order >= 0
}

// unanswered returns the result for an Application whose comparison is not known to be new; ok is false if it is.
func (seen *Cluster) unanswered(spec *Spec, app Application) (result health.Result, ok bool) {
	refresh, asked := seen.Refreshes[app.Key()]
	began := seen.LookOnly || seen.Refreshes != nil
	if began && seen.compared(app) {
		return health.Result{}, false
	}
	switch {
	case !seen.controllers(spec):
		return health.Block(app.title(), "Argo CD's controllers do not run"), true
	case refresh.Err != nil:
		result := app.fail("cannot be asked to compare anew: " + refresh.Err.Reason)
		result.Hopeless = refresh.Err.Hopeless
		result.Command = fmt.Sprintf("kubectl -n %s annotate application %s %s=%s --overwrite", app.Namespace, app.Name,
			RefreshAnnotation, RefreshHard)
		return result, true
	case !began || asked && refresh.Version == "" && !app.Refreshing:
		return health.NotSeen(app.title(), "its comparison"), true // it is about to be asked
	}
	reason := "has not compared yet since it was asked to"
	if before := cmp.Or(app.errors(), app.syncErrors()); before != "" {
		reason += "; before: " + before
	}
	return app.fail(reason), true
}

// compared reports whether the newest comparison of an Application is from after the beginning of the wait, or counts without that.
func (seen *Cluster) compared(app Application) bool {
	refresh, asked := seen.Refreshes[app.Key()]
	switch {
	case asked:
		return refresh.Answered // whatever others, such as a webhook of Git, ask it afterwards
	case seen.LookOnly:
		return !app.Refreshing
	case seen.Refreshes == nil:
		return false
	}
	return true // it came later
}
