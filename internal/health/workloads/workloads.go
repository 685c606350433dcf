// Package workloads checks that what Helm releases installed is rolled out and Ready.
package workloads

import (
	"fmt"
	"strings"

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
		var results []health.Result
		for _, release := range spec.Releases {
			results = append(results, seen.release(release)...)
		}
		return results
	},
}

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, nil)
}

// Run reports whether every workload of the releases is rolled out and Ready.
func Run(spec *Spec, seen *Cluster) bool { return health.Hold(rolledOut.Judge(spec, seen)) }

// release judges the workloads of one release.
func (seen *Cluster) release(release Release) []health.Result {
	subject := "release " + release.title()
	var results []health.Result
	for _, kind := range kube.Kinds {
		sets := seen.Sets[Place{Kind: kind, Namespace: release.Namespace}]
		if result, missing := sets.Unread(subject, "its "+kind+"s"); missing {
			return []health.Result{result}
		}
		for _, set := range sets.Items {
			if set.Release == release.Name {
				results = append(results, judge(set, seen.Pods[release.Namespace]))
			}
		}
	}
	if len(results) == 0 {
		result := health.Fail(subject, "has no Deployment, StatefulSet or DaemonSet")
		result.Command = fmt.Sprintf("helm -n %s status %s", release.Namespace, release.Name)
		return []health.Result{result}
	}
	return results
}

// judge judges one workload. If it fails, the reason names the first pod that is not Ready.
func judge(set kube.Workload, pods health.Seen[kube.Pod]) health.Result {
	subject := set.Kind + " " + set.Namespace + "/" + set.Name
	if result, missing := pods.Unread(subject, "its pods"); missing {
		return result
	}
	ready, lost := 0, 0
	var notReady []health.Result
	for _, pod := range pods.Items {
		if !set.Owns(pod) {
			continue
		}
		lost += pod.Lost
		if pod.Deleting {
			continue
		}
		if result := pod.ReadyResult(subject); result.Verdict == health.Passed {
			ready++
		} else {
			notReady = append(notReady, result)
		}
	}
	result := health.Pass(subject)
	switch behind := set.Behind(); {
	case behind != "":
		result = health.Fail(subject, behind)
	case ready < set.Desired:
		result = health.Fail(subject, fmt.Sprintf("%d of %d pods are Ready", ready, set.Desired))
	case set.Old > 0:
		result = health.Fail(subject, fmt.Sprintf("%d pods of an older spec are still there", set.Old))
	}
	result.Lost = lost
	if result.Verdict == health.Passed {
		return result
	}
	if set.Failure != "" {
		result.Evidence = append(result.Evidence, set.Kind+": "+set.Failure)
	}
	if len(notReady) > 0 {
		pod := notReady[0]
		result.Reason += "; " + pod.Reason
		result.Evidence = append(result.Evidence, pod.Evidence...)
		result.Command = pod.Command
		result = result.Asks(pod.Ask...)
	} else {
		result.Command = fmt.Sprintf("kubectl -n %s describe %s %s", set.Namespace, strings.ToLower(set.Kind), set.Name)
	}
	return result.Asks(set.Events())
}
