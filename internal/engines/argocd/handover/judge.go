package handover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// judged is an Application of the tree with its result.
type judged struct {
	Application

	parent  int // its parent's index in the tree; -1 of the root
	result  health.Result
	waits   bool // the cause may be another Application, which it applies
	settled bool // it passed, and does not move
}

// judge judges an Application by itself.
func (seen *Cluster) judge(spec *Spec, one *judged) {
	one.result, one.waits = seen.problem(spec, one.Application)
	switch {
	case one.result.Verdict == health.Passed:
		one.settled = true
	case one.result.Verdict == health.Failed && !one.result.Unseen && seen.moves(spec, one.Application):
		one.result, one.waits = health.Pass(one.title()), false
	}
}

// problem returns the first condition that an Application does not meet, and whether the cause may be an Application that it applies.
func (seen *Cluster) problem(spec *Spec, app Application) (result health.Result, waits bool) {
	if app.Deleting {
		return app.fail(strings.TrimSuffix("is being deleted; "+app.errors(), "; ")), false
	}
	if result, ok := seen.unanswered(spec, app); ok {
		return result, false
	}
	sync := app.Operation
	switch why := app.errors(); {
	case why != "":
		return app.fail(why), false
	case !app.Compared || app.Sync == "":
		return app.fail("has not compared its newest spec yet"), false
	case app.byHand():
		return health.Skip(app.title(), "is OutOfSync, and is synced by hand"), false
	case sync.failing() && !app.outlived():
		return seen.explain(app, app.failSync()), !app.failedItself()
	case sync.active():
		return seen.explain(app, app.failRunning()), true
	case app.syncErrors() != "":
		return app.fail(app.syncErrors()), false
	case app.Sync == outOfSync:
		return app.failOutOfSync(), true
	case app.Sync != synced:
		return app.fail("its sync status is " + app.Sync), false
	case app.Health != healthy && app.Health != suspended:
		return seen.explain(app, app.failHealth()), true
	}
	if result, ok := seen.otherRevision(spec, app); ok {
		return result, false
	}
	if app.Health == suspended {
		return health.Skip(app.title(), app.failHealth().Reason), false
	}
	return health.Pass(app.title()), false
}

// byHand reports whether an Application waits for a person: nothing else begins its sync.
func (a Application) byHand() bool {
	return a.Sync == outOfSync && !a.Automated && !a.Operation.active()
}

// outlived reports whether a failed sync says nothing about the newest comparison: everything is in sync at another revision, and no hook
// failed. Argo CD begins no new sync then, so that the failure stays in the status. A failed hook was not run again.
func (a Application) outlived() bool {
	hookFailed := slices.ContainsFunc(a.Operation.Steps, func(s Step) bool { return s.Hook != "" && s.failed() })
	var revisions []string
	for _, source := range a.Sources {
		revisions = append(revisions, source.Revision)
	}
	return !a.Operation.active() && a.Sync == synced && !hookFailed && !slices.Equal(a.Operation.Revisions, revisions)
}

// otherRevision returns the result for an Application of the root's repository whose revision does not count; ok is false if it does.
func (seen *Cluster) otherRevision(spec *Spec, app Application) (result health.Result, ok bool) {
	root, found := seen.root(spec)
	revision, shared := app.at(root)
	switch {
	case !found || !shared || app.Key() == root.Key() || slices.Contains(seen.Fetched, revision):
		return health.Result{}, false
	case seen.Held[app.Key()] != "":
		return health.Result{}, false // since it was at a revision of the root, it only goes on
	case len(seen.Fetched) == 0:
		return health.Block(app.title(), "the root has not compared with the declared source"), true
	}
	return app.fail(fmt.Sprintf("has compared with %s, the root with %s", cmp.Or(revision, "nothing"),
		seen.Fetched[len(seen.Fetched)-1])), true
}

// moves reports whether an Application of the root's repository, which met all conditions since the wait began, applies a newer revision.
func (seen *Cluster) moves(spec *Spec, app Application) bool {
	root, _ := seen.root(spec)
	revision, shared := app.at(root)
	held := seen.Held[app.Key()]
	if !shared || held == "" || revision == held || app.Deleting || !app.Compared || len(app.Errors) > 0 {
		return false
	}
	progresses := app.Health == healthy || app.Health == "Progressing" || app.Health == "Missing"
	return progresses && (app.Sync == synced || app.Sync == outOfSync) && (!app.Operation.failing() || app.outlived())
}

// failSync is the result for an Application whose newest sync failed.
func (a Application) failSync() health.Result {
	reason := "its sync failed"
	switch {
	case a.Operation.active() && a.Operation.Retries:
		reason += ", and is tried again"
	case a.Operation.active():
		reason = "its sync is " + a.Operation.Phase + ", and will fail"
	}
	if a.Operation.Message != "" {
		reason += ": " + a.Operation.Message
	}
	steps := a.Operation.steps(Step.failed)
	if len(steps) > 0 && (steps[0].Message == "" || !strings.Contains(a.Operation.Message, steps[0].Message)) {
		reason += "; " + steps[0].text()
	}
	return a.failSteps(reason, steps)
}

// failRunning is the result for an Application whose sync has not ended.
func (a Application) failRunning() health.Result {
	if !a.Operation.begun() {
		return a.fail("has a sync to do, which has not begun yet")
	}
	reason, steps := "its sync is "+a.Operation.Phase, a.Operation.steps(Step.runs)
	if a.Operation.Message != "" {
		reason += ": " + a.Operation.Message
	} else if len(steps) > 0 {
		reason += ": waits for " + steps[0].Title()
	}
	return a.failSteps(reason, steps)
}

// failSteps is the result for an Application whose sync has stopped at steps.
func (a Application) failSteps(reason string, steps []Step) health.Result {
	result := a.fail(reason)
	for _, step := range steps {
		result.Evidence = append(result.Evidence, step.text())
	}
	return result
}

// failOutOfSync is the result for an Application that is not in sync although nothing syncs it.
func (a Application) failOutOfSync() health.Result {
	result := a.fail("is OutOfSync")
	prunes := true
	for _, resource := range a.Resources {
		if resource.Sync != outOfSync {
			continue
		}
		text := resource.Title() + " is OutOfSync"
		if resource.Prune {
			text = resource.Title() + " is not in Git any more"
		}
		prunes = prunes && resource.Prune
		result.Evidence = append(result.Evidence, text)
	}
	if len(result.Evidence) == 0 {
		return result
	}
	result.Reason += ": " + result.Evidence[0]
	switch {
	case prunes && !a.Prune:
		result.Reason += ", and automated pruning is off"
	case a.Automated && !a.SelfHeal:
		result.Reason += "; self-healing is off, so that a revision is synced only once"
	}
	return result
}

// failHealth is the result for an Application that is not Healthy.
func (a Application) failHealth() health.Result {
	result := a.fail("is " + cmp.Or(a.Health, "of unknown health"))
	for _, resource := range a.Resources {
		if resource.ails() {
			text := resource.Title() + " is " + resource.Health
			if resource.Message != "" {
				text += ": " + resource.Message
			}
			if resource.Health == a.Health && result.Reason == "is "+a.Health {
				result.Reason += ": " + text
			}
			result.Evidence = append(result.Evidence, text)
		}
	}
	return result
}

// ails reports whether Argo CD judges the resource as not Healthy.
func (r Resource) ails() bool { return r.Health != "" && r.Health != healthy }
