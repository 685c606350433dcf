package handover

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// Application is an Application of Argo CD. Texts that Argo CD wrote hold no secret.
type Application struct {
	Namespace, Name string
	Version         string // resourceVersion
	Project         string // "" means default
	Sources         []Source
	InCluster       bool   // it applies to the cluster that Argo CD runs in
	Tracker         string // Application that applies it, as the tracking id has it: "name" or "namespace_name"; "" without
	Set             string // "namespace/name" of the ApplicationSet that made it; "" without

	Automated, Prune, SelfHeal bool // of the automated sync

	Deleting   bool
	Refreshing bool        // it was asked to compare anew, and has not answered yet
	Compared   bool        // the newest comparison is about the newest spec
	Errors     []Condition // the conditions that are errors
	Sync       string      // Synced, OutOfSync or Unknown; "" before the first comparison
	Health     string      // Healthy, Suspended, Progressing, Missing, Degraded or Unknown; "" before the first comparison
	Operation  Operation
	Resources  []Resource // what it applies
}

// Source is one of the sources of an Application.
type Source struct {
	URL, Ref, Path string
	Revision       string // of the newest comparison; if it failed, this may be the Ref
}

// Condition is a condition of an Application.
type Condition struct{ Type, Message string }

// Operation is the newest sync of an Application. The zero value is none.
type Operation struct {
	Requested bool   // it is to begin, or runs
	Phase     string // Running, Terminating, Succeeded, Failed or Error
	Message   string
	Retries   bool     // it failed, and begins again after a pause; its Phase is Running then
	Former    bool     // it is of other sources than the Application has now
	Revisions []string // of the Application's sources
	Steps     []Step
}

// Step is what a sync has done with one object.
type Step struct {
	Object
	Hook    string // PreSync, Sync, PostSync, SyncFail and so on; "" of an object that is no hook
	Phase   string // Running, Succeeded, Failed or Error; "" before it was tried
	Status  string // Synced, SyncFailed, Pruned or PruneSkipped; "" of a hook
	Message string
}

// Resource is an object that an Application applies.
type Resource struct {
	Object
	Sync            string // Synced, OutOfSync or Unknown; "" of a hook
	Health, Message string // "" if Argo CD does not judge the kind, or does not store the health
	Prune           bool   // it is not in Git any more
	Hook            bool
}

// Object identifies an object.
type Object struct{ Group, Kind, Namespace, Name string }

// Title names the object, as in "Deployment podinfo/podinfo".
func (o Object) Title() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func (o Object) key() string { return o.Namespace + "/" + o.Name }

func (o Object) isApplication() bool { return o.Group == group && o.Kind == kind }

// Words of Argo CD.
const (
	group = "argoproj.io"
	kind  = "Application"

	synced, outOfSync  = "Synced", "OutOfSync"
	healthy, suspended = "Healthy", "Suspended"

	running, terminating = "Running", "Terminating"
	failed, failedByArgo = "Failed", "Error"
	syncFailed           = "SyncFailed"
	syncError            = "SyncError"
)

// Key is "namespace/name".
func (a Application) Key() string { return a.Namespace + "/" + a.Name }

func (a Application) title() string { return kind + " " + a.Key() }

// fail is the result for an Application that does not meet the condition.
func (a Application) fail(reason string) health.Result {
	return health.FailObject(kind, a.Namespace, a.Name, reason)
}

// errors are the error conditions in one text, without the SyncError, which only repeats why the newest sync failed or did not begin.
func (a Application) errors() string {
	var texts []string
	for _, condition := range a.Errors {
		if condition.Type != syncError {
			texts = append(texts, condition.Type+": "+condition.Message)
		}
	}
	return strings.Join(texts, "; ")
}

// syncErrors are the messages of the conditions SyncError.
func (a Application) syncErrors() string {
	var texts []string
	for _, condition := range a.Errors {
		if condition.Type == syncError {
			texts = append(texts, condition.Message)
		}
	}
	return strings.Join(texts, "; ")
}

// resolved returns the revision that the newest comparison resolved the first source's reference to. A comparison that could not read the
// source has the status Unknown, and the reference as its revision.
func (a Application) resolved() (revision string, ok bool) {
	if len(a.Sources) == 0 || a.Sync != synced && a.Sync != outOfSync {
		return "", false
	}
	return a.Sources[0].Revision, a.Sources[0].Revision != ""
}

// at returns the revision of the source that has the repository and the reference of the root's; shared is false if there is none.
func (a Application) at(root Application) (revision string, shared bool) {
	if len(root.Sources) == 0 {
		return "", false
	}
	for _, source := range a.Sources {
		if source.follows(root.Sources[0]) {
			return source.Revision, true
		}
	}
	return "", false
}

// follows reports whether two sources have the same repository and the same reference.
func (s Source) follows(other Source) bool {
	return plainURL(s.URL) == plainURL(other.URL) && fullRef(s.Ref) == fullRef(other.Ref)
}

// plainURL returns a URL without the end that Git hosts do not need.
func plainURL(url string) string { return strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git") }

// active reports whether the sync has not ended.
func (o Operation) active() bool {
	return o.Requested || o.Phase == running || o.Phase == terminating
}

// begun reports whether the steps are those of the sync that has not ended.
func (o Operation) begun() bool { return o.Phase == running || o.Phase == terminating }

// failing reports whether the sync failed, or will.
func (o Operation) failing() bool {
	return o.Phase == failed || o.Phase == failedByArgo || o.begun() && (o.Retries || slices.ContainsFunc(o.Steps, Step.failed))
}

func (s Step) failed() bool {
	return s.Status == syncFailed || s.Phase == failed || s.Phase == failedByArgo
}

func (s Step) runs() bool { return s.Phase == running }

// Title names the object, and says so if it is a hook.
func (s Step) Title() string {
	if s.Hook != "" {
		return s.Hook + " hook " + s.Object.Title()
	}
	return s.Object.Title()
}

// text is the step with its message.
func (s Step) text() string {
	if s.Message == "" {
		return s.Title()
	}
	return s.Title() + ": " + s.Message
}

// steps returns the steps that a function selects.
func (o Operation) steps(selects func(Step) bool) []Step {
	return slices.DeleteFunc(slices.Clone(o.Steps), func(s Step) bool { return !selects(s) })
}
