// Package workloads checks that what Helm releases installed is rolled out and Ready.
package workloads

import (
	"fmt"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// Checks are the checks of Helm releases.
var Checks = []health.Check[*Spec, *Cluster]{rolledOut, samplesAccepted, acted}

// Cluster is what was seen of the releases' workloads. The zero value has seen nothing.
type Cluster struct {
	Sets    map[Place]health.Seen[kube.Workload]
	Pods    map[string]health.Seen[kube.Pod] // by namespace
	Samples map[string]Answer                // by the sample's title
	Acted   map[string]health.Seen[Acted]    // by the title of the one object
}

// Place is where workloads of one kind are.
type Place struct {
	Kind      string // one of kube.Kinds
	Namespace string
}

var rolledOut = health.Check[*Spec, *Cluster]{
	Name:   "every workload of the Helm releases is rolled out and Ready",
	Looks:  "Deployments, StatefulSets and DaemonSets with the release's annotation: all pods are of the newest spec and Ready",
	ByHand: "kubectl -n NAMESPACE describe KIND NAME",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return xslices.FlatMap(spec.Releases, func(release Release) []health.Result { return seen.release(spec, release) })
	},
}

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, nil)
}

// Run reports whether every workload of the releases is rolled out and Ready.
func Run(spec *Spec, seen *Cluster) bool { return health.Hold(rolledOut.Judge(spec, seen)) }

// afterRollout returns a check's Judge that has nothing to judge without subjects, and is blocked until every workload runs.
func afterRollout[T any](none string, of func(*Spec) []T, judge func(T, *Cluster) health.Result) func(*Spec, *Cluster) []health.Result {
	return func(spec *Spec, seen *Cluster) []health.Result {
		if len(of(spec)) == 0 {
			return []health.Result{health.Skip("", none)}
		}
		if !Run(spec, seen) {
			return []health.Result{health.Block("", "not every workload runs")}
		}
		return xslices.Map(of(spec), func(one T) health.Result { return judge(one, seen) })
	}
}

// release judges the workloads of one release.
func (seen *Cluster) release(spec *Spec, release Release) []health.Result {
	subject := "release " + release.title()
	var results []health.Result
	for _, kind := range kube.Kinds {
		sets := seen.Sets[Place{Kind: kind, Namespace: release.Namespace}]
		if result, missing := sets.Unread(subject, "its "+kind+"s"); missing {
			return []health.Result{result}
		}
		for _, set := range sets.Items {
			if set.Release == release.Name {
				pods := seen.Pods[release.Namespace]
				set, pods.Items = set.Without(spec.Skip.Has, pods.Items)
				results = append(results, set.Rollout(pods))
			}
		}
	}
	if len(results) == 0 {
		return []health.Result{health.Fail(subject, "has no Deployment, StatefulSet or DaemonSet").
			WithCommand(fmt.Sprintf("helm -n %s status %s", release.Namespace, release.Name))}
	}
	return results
}
