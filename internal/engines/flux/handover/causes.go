package handover

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// Reasons of a Ready condition that no workload is the cause of.
const (
	dependencyNotReady = "DependencyNotReady"
	artifactFailed     = "ArtifactFailed"
	buildFailed        = "BuildFailed"
)

// waiting is the result for an object that waits for others. It is blocked, so that only the cause is reported, unless the cause is
// nowhere else in the report.
func (seen *Cluster) waiting(object Object, result health.Result) health.Result {
	for _, title := range object.DependsOn {
		dependency, found := seen.object(title)
		switch {
		case !found:
			return object.fail("waits for " + title + ", which does not exist")
		case dependency.Ready == "True": // of an older revision, for a moment
		case dependency.Suspended:
			waits := object.fail("waits for " + title + ", which is suspended; resume it")
			waits.Command = dependency.resume()
			return waits
		default:
			if circle := Circle(object.title(), seen.needs); circle != nil {
				return object.fail("waits for itself: " + strings.Join(circle, " → "))
			}
			return health.Block(object.title(), title+" is not Ready")
		}
	}
	return result
}

// needs returns the titles of what the Kustomization or HelmRelease of a title waits for.
func (seen *Cluster) needs(title string) []string {
	object, _ := seen.object(title)
	return object.DependsOn
}

// Circle returns the way from something over what each needs back to itself; nil if there is none.
func Circle(from string, needs func(string) []string) []string {
	met := map[string]bool{}
	var way func(at string) []string
	way = func(at string) []string {
		for _, next := range needs(at) {
			if next == from {
				return []string{at, next}
			}
			if met[next] {
				continue
			}
			met[next] = true
			if rest := way(next); rest != nil {
				return append([]string{at}, rest...)
			}
		}
		return nil
	}
	return way(from)
}

// object returns the Kustomization or HelmRelease of a title.
func (seen *Cluster) object(title string) (Object, bool) {
	is := func(o Object) bool { return o.title() == title }
	if object, found := seen.Kustomizations.Find(is); found {
		return object, true
	}
	return seen.HelmReleases.Find(is)
}

// explain adds to a failed result the first workload of the object that is not rolled out, with the evidence that a gate would show.
func (seen *Cluster) explain(object Object, result health.Result) health.Result {
	if result.Verdict != health.Failed || object.Reason == artifactFailed || object.Reason == buildFailed {
		return result
	}
	for _, set := range seen.Workloads.Items {
		if !object.applied(set) {
			continue
		}
		if cause := set.Rollout(seen.Pods); cause.Verdict == health.Failed && !cause.Unseen {
			result.Reason += "; " + cause.Subject + ": " + cause.Reason
			result.Evidence = append(result.Evidence, cause.Evidence...)
			result.Command = cause.Command
			return result.Asks(cause.Ask...)
		}
	}
	return result
}

// applied reports whether a workload is one that the object has applied.
func (o Object) applied(set kube.Workload) bool {
	if o.Kind == "HelmRelease" {
		return set.Labels["helm.toolkit.fluxcd.io/namespace"] == o.Namespace && set.Labels["helm.toolkit.fluxcd.io/name"] == o.Name
	}
	return slices.Contains(o.Workloads, set.Title())
}
