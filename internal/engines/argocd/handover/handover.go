// Package handover checks that Argo CD has applied the root Application and everything below it.
package handover

import (
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

type check = health.Check[*Spec, *Cluster]

// Checks are in the order in which Argo CD comes up.
var Checks = []check{controllersRun, rootDeclared, rootApplied, treeHealthy}

// Cluster is what was seen of Argo CD in a cluster. The zero value has seen nothing.
type Cluster struct {
	Applications health.Seen[Application] // of all namespaces
	Projects     health.Seen[string]      // names of the AppProjects in Argo CD's namespace
	Workloads    health.Seen[kube.Workload]
	Pods         health.Seen[kube.Pod]

	// LookOnly: no Application is asked to compare anew. It is judged by its newest comparison, which may be older than the wait.
	LookOnly bool
	// Refreshes are the Applications that are asked to compare anew, by Application.Key; nil before Begin. An Application that is not among
	// them came later, so that it has compared since the wait began if it has compared at all.
	Refreshes map[string]Refresh
	// Restarted are the Applications whose failed sync was begun again since the wait began, by Application.Key.
	Restarted map[string]bool
	// Fetched are the revisions that the root has compared with since the wait began, each as the root was declared. A push during the wait
	// adds one: an Application that is at any of them is at the revision at the begin of the wait, or at a newer one.
	Fetched []string
	// Held are the revisions at which Applications of the root's repository met all conditions for the last time, by Application.Key.
	Held map[string]string
}

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, nil)
}

// Note notes which Applications have answered a refresh, which revision the root has fetched, and at which revisions Applications met all
// conditions. It is called after each change of Applications and Refreshes.
func (seen *Cluster) Note(spec *Spec) {
	seen.noteAnswers()
	root, found := seen.root(spec)
	if !found || !health.Hold(rootDeclared.Judge(spec, seen)) {
		return
	}
	if revision, resolved := root.resolved(); resolved && seen.compared(root) && !slices.Contains(seen.Fetched, revision) {
		seen.Fetched = append(seen.Fetched, revision)
	}
	for _, one := range seen.judgeTree(spec).members {
		if revision, shared := one.at(root); one.settled && shared {
			if seen.Held == nil {
				seen.Held = map[string]string{}
			}
			seen.Held[one.Key()] = revision
		}
	}
}

// AppliedRevision returns the revision that the root Application has applied, in the form of Flux; "" before.
func (seen *Cluster) AppliedRevision(spec *Spec) string {
	root, found := seen.root(spec)
	if !found || len(root.Sources) == 0 {
		return ""
	}
	source, revision := root.Sources[0], seen.Held[root.Key()] // while it applies a newer one
	if root.Sync == synced {
		revision = source.Revision
	}
	switch {
	case revision == "":
		return ""
	case digits.MatchString(revision) && len(revision) == 40:
		return fullRef(source.Ref) + "@sha1:" + revision
	case digits.MatchString(revision) && len(revision) == 64:
		return fullRef(source.Ref) + "@sha256:" + revision
	}
	return source.Ref + "@" + revision
}

var digits = regexp.MustCompile(`^[0-9a-f]+$`)

// fullRef returns the full reference of a branch name. Argo CD follows HEAD without one.
func fullRef(ref string) string {
	switch {
	case ref == "":
		return "HEAD"
	case ref == "HEAD" || strings.HasPrefix(ref, "refs/"):
		return ref
	}
	return "refs/heads/" + ref
}

// application returns the Application of a key.
func (seen *Cluster) application(key string) (Application, bool) {
	return seen.Applications.Find(func(app Application) bool { return app.Key() == key })
}

// root returns the root Application.
func (seen *Cluster) root(spec *Spec) (Application, bool) {
	return seen.application(spec.Namespace + "/" + spec.Root)
}
