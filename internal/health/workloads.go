package health

import (
	"fmt"
	"strings"
)

// Workloads are what has been seen of the workloads of Helm releases, as the checks read it.
type Workloads struct {
	Sets    map[Place]Seen[Workload]
	Pods    map[string]Seen[Pod] // by namespace
	Samples map[string]Accepted  // by the sample's title
}

// Place is where workloads of one kind are.
type Place struct {
	Kind      string // Deployment, StatefulSet or DaemonSet
	Namespace string
}

// WorkloadKinds are the kinds of workloads that a release may have.
var WorkloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// Accepted is the API's answer to a sample.
type Accepted struct {
	Asked bool
	Err   *Broken // nil: it would be taken
	Lost  int     // how often the API stopped taking it
}

// WorkloadsChecks are the checks of what releases have put into a cluster.
func WorkloadsChecks(spec *WorkloadsSpec) []Check[*Workloads] {
	return []Check[*Workloads]{releasesRun(spec), samplesAccepted(spec)}
}

func releasesRun(spec *WorkloadsSpec) Check[*Workloads] {
	return Check[*Workloads]{Name: "every workload of the Helm releases is rolled out and Ready", Evaluate: func(seen *Workloads) []Result {
		var results []Result
		for _, release := range spec.Releases {
			results = append(results, seen.release(release)...)
		}
		return results
	}}
}

// WorkloadsRun reports whether every workload of the releases runs.
func WorkloadsRun(spec *WorkloadsSpec, seen *Workloads) bool {
	return Hold(releasesRun(spec).Evaluate(seen))
}

// release judges the workloads of one release.
func (w *Workloads) release(release Release) []Result {
	var results []Result
	for _, kind := range WorkloadKinds {
		sets := w.Sets[Place{Kind: kind, Namespace: release.Namespace}]
		switch {
		case sets.Err != nil:
			return []Result{unreadable("release "+release.title(), "its "+kind+"s", sets.Err)}
		case !sets.Synced:
			return []Result{unseen("release "+release.title(), "its "+kind+"s")}
		}
		for _, set := range sets.Items {
			if set.Release == release.Name {
				results = append(results, runs(set, w.Pods[release.Namespace]))
			}
		}
	}
	if len(results) == 0 {
		result := failed("release "+release.title(), "has no Deployment, StatefulSet or DaemonSet")
		result.Command = fmt.Sprintf("helm -n %s status %s", release.Namespace, release.Name)
		return []Result{result}
	}
	return results
}

// runs says how far a workload's rollout is, and what keeps the first of its pods from being Ready.
func runs(set Workload, pods Seen[Pod]) Result {
	subject := set.Kind + " " + set.Namespace + "/" + set.Name
	switch {
	case pods.Err != nil:
		return unreadable(subject, "its pods", pods.Err)
	case !pods.Synced:
		return unseen(subject, "its pods")
	}
	ready, lost := 0, 0
	var waiting []Result
	for _, pod := range pods.Items {
		if !set.owns(pod) {
			continue
		}
		lost += pod.Lost
		if pod.Deleting {
			continue
		}
		if result := podReady(subject, pod, ""); result.Verdict == Passed {
			ready++
		} else {
			waiting = append(waiting, result)
		}
	}
	result := passed(subject)
	switch {
	case !set.Observed:
		result = failed(subject, "its controller has not seen the newest spec yet")
	case set.Updated < set.Desired:
		result = failed(subject, fmt.Sprintf("%d of %d pods are of the newest spec", set.Updated, set.Desired))
	case ready < set.Desired:
		result = failed(subject, fmt.Sprintf("%d of %d pods are Ready", ready, set.Desired))
	case set.Old > 0:
		result = failed(subject, fmt.Sprintf("%d pods of an older spec are still there", set.Old))
	}
	result.Lost = lost
	if result.Verdict == Failed {
		result = because(result, set, waiting)
	}
	return result
}

// because adds what a person would look at next: what the controller says, and what keeps the first pod that is not Ready.
func because(result Result, set Workload, waiting []Result) Result {
	result.Command = fmt.Sprintf("kubectl -n %s describe %s %s", set.Namespace, strings.ToLower(set.Kind), set.Name)
	if set.Stuck != "" {
		result.Evidence = append(result.Evidence, set.Kind+": "+set.Stuck)
	}
	if len(waiting) > 0 {
		result.Reason += "; " + waiting[0].Reason
		result.Evidence = append(result.Evidence, waiting[0].Evidence...)
		result.Command = waiting[0].Command
		result = result.asks(waiting[0].Ask...)
	}
	return result.asks(Question{Kind: Events, Object: set.Kind, Namespace: set.Namespace, Name: set.Name})
}

// owns reports whether the workload's selector matches a pod.
func (w Workload) owns(pod Pod) bool {
	for key, value := range w.Selector {
		if pod.Labels[key] != value {
			return false
		}
	}
	return len(w.Selector) > 0
}

// samplesAccepted asks what only an answer shows: that a webhook is reached, and trusted.
func samplesAccepted(spec *WorkloadsSpec) Check[*Workloads] {
	return Check[*Workloads]{Name: "the API takes what the releases serve", Evaluate: func(seen *Workloads) []Result {
		if len(spec.Accepts) == 0 {
			return []Result{skipped("", "nothing is to be tried")}
		}
		if !WorkloadsRun(spec, seen) {
			return []Result{blocked("", "not every workload runs")}
		}
		var results []Result
		for _, sample := range spec.Accepts {
			title := sample.Title()
			answer := seen.Samples[title]
			result := passed(title)
			switch {
			case !answer.Asked:
				result = unseen(title, "an answer to it")
			case answer.Err != nil:
				result = failed(title, "is not taken: "+answer.Err.Reason)
				result.Command = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
			}
			result.Lost = answer.Lost
			results = append(results, result)
		}
		return results
	}}
}
