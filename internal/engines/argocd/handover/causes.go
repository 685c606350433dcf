package handover

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// block blocks the Applications that only wait for others, so that only the cause is reported. Its cause is below an Application in the
// tree, so that one that is not blocked is at the end of each chain.
func (seen *Cluster) block(all *tree) {
	var failing []bool
	for _, one := range all.members {
		failing = append(failing, one.result.Verdict == health.Failed && !one.result.Unseen)
	}
	for i := range all.members {
		one := &all.members[i]
		if !failing[i] || !one.waits || seen.ailsItself(one.Application) {
			continue
		}
		for j, child := range all.members {
			if child.parent == i && failing[j] {
				one.result = health.Block(one.title(), child.title()+" is not Synced and Healthy")
				break
			}
		}
		if one.result.Verdict == health.Failed {
			waitForHand(all, i)
		}
	}
}

// waitForHand names in the result of an Application the one that it waits for and that a person has to sync.
func waitForHand(all *tree, i int) {
	for _, child := range all.members {
		if child.parent == i && child.byHand() && all.members[i].Operation.waitsFor(child.Application) {
			all.members[i].result.Reason += "; " + child.title() + " is synced by hand; sync it"
			return
		}
	}
}

// waitsFor reports whether the sync waits for an Application.
func (o Operation) waitsFor(app Application) bool {
	return slices.ContainsFunc(o.Steps, func(s Step) bool { return s.runs() && s.isApplication() && s.key() == app.Key() })
}

// ailsItself reports whether something that the Application applies, and that is no Application, is not as it should be.
func (seen *Cluster) ailsItself(app Application) bool {
	switch {
	case app.Operation.failing() && !app.outlived():
		return app.failedItself()
	case app.Operation.begun():
		return slices.ContainsFunc(app.Operation.Steps, func(s Step) bool { return s.runs() && !s.isApplication() })
	}
	if _, stuck := seen.stuck(app); stuck {
		return true
	}
	return slices.ContainsFunc(app.Resources, func(r Resource) bool {
		return !r.isApplication() && (r.Sync == outOfSync || r.ails() && r.Health != suspended)
	})
}

// failedItself reports whether the newest sync failed for another reason than that an Application did not become Healthy.
func (a Application) failedItself() bool {
	steps := a.Operation.steps(Step.failed)
	return len(steps) == 0 || slices.ContainsFunc(steps, func(s Step) bool { return !s.isApplication() || s.Status == syncFailed })
}

// explain adds to a failed result why an object of the Application does not become Healthy, with the evidence that a gate would show.
func (seen *Cluster) explain(app Application, result health.Result) health.Result {
	cause, stuck := seen.stuck(app)
	if !stuck {
		return result
	}
	result.Reason += "; " + cause.Subject + ": " + cause.Reason
	result.Evidence = append(result.Evidence, cause.Evidence...)
	result.Command = cause.Command
	return result.Asks(cause.Ask...)
}

// stuck returns the result for the first hook or workload of the Application that does not become Ready.
func (seen *Cluster) stuck(app Application) (result health.Result, found bool) {
	if !app.InCluster {
		return health.Result{}, false
	}
	for _, step := range app.Operation.Steps {
		if step.Hook != "" && (step.failed() || app.Operation.begun() && step.runs()) {
			if result, found := seen.stuckPod(step); found {
				return result, true
			}
		}
	}
	for _, set := range seen.Workloads.Items {
		applies := func(r Resource) bool { return r.Group == "apps" && r.Title() == set.Title() }
		if !slices.ContainsFunc(app.Resources, applies) {
			continue
		}
		if cause := set.Rollout(seen.Pods); cause.Verdict == health.Failed && !cause.Unseen {
			return cause, true
		}
	}
	return health.Result{}, false
}

// stuckPod returns the result for the first pod of a hook that did not succeed.
func (seen *Cluster) stuckPod(hook Step) (result health.Result, found bool) {
	for _, pod := range seen.Pods.Items {
		if !of(hook.Object, pod) || pod.Phase == "Succeeded" {
			continue
		}
		result := pod.ReadyResult(hook.Object.Title())
		for _, c := range pod.Containers {
			if strings.HasPrefix(c.State, "terminated") && !strings.HasPrefix(c.State, "terminated: Completed") && c.Restarts == 0 {
				log := health.Question{Kind: health.PodLog, Namespace: pod.Namespace, Name: pod.Name, Container: c.Name}
				result = result.Asks(log)
				result.Command = "kubectl -n " + pod.Namespace + " logs " + pod.Name + " -c " + c.Name
			}
		}
		if result.Verdict == health.Failed {
			return result, true
		}
	}
	return health.Result{}, false
}

// of reports whether a pod is that of a hook: the hook itself, or a pod of the Job.
func of(hook Object, pod kube.Pod) bool {
	switch {
	case hook.Namespace != pod.Namespace:
		return false
	case hook.Kind == "Pod":
		return hook.Name == pod.Name
	}
	return hook.Group == "batch" && hook.Kind == "Job" && pod.Labels["batch.kubernetes.io/job-name"] == hook.Name
}
