package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/health"
)

// Workload is the state of the rollout of a Deployment, StatefulSet or DaemonSet.
//
// It is judged here and not by cli-utils' kstatus. There a Deployment is Current only once all replicas are available, so with one node the
// gate would never open: one of Cilium's two operators stays Pending.
type Workload struct {
	Kind, Namespace, Name string
	Release               string            // the Helm release that owns it, "" without one
	Labels                map[string]string // its own
	Selector              map[string]string // labels of its pods
	Observed              bool              // the controller has seen the newest spec
	Desired, Updated, Old int               // pods wanted; pods of the newest template; pods of earlier templates
	Failure               string            // why its controller cannot create pods; "" if it reports nothing
	NodeSelector          map[string]string // labels that a node must have for its pods
	Tolerations           []corev1.Toleration
	Generation            string   // of a DaemonSet's newest template, as its pods' labels have it; "" if unknown
	LeftOut               []string // nodes with a pod of it that are left out
	OnDelete              bool     // its update strategy: a pod is replaced only once somebody deletes it
}

// Kinds are the kinds of workloads.
var Kinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// Behind returns why the newest spec is not rolled out; "" if there are as many pods of it as wanted, Ready or not.
func (w Workload) Behind() string {
	switch {
	case !w.Observed:
		return "its controller has not seen the newest spec yet"
	case w.Updated < w.Desired:
		behind := fmt.Sprintf("%d of %d pods are of the newest spec", w.Updated, w.Desired)
		if len(w.LeftOut) > 0 {
			// Such a pod counts as one of those that may be away at once, by maxUnavailable.
			behind += fmt.Sprintf("; if no more come, its pods on nodes that are left out block the others: kubectl delete node %s",
				strings.Join(w.LeftOut, " "))
		}
		if w.OnDelete {
			behind += "; its update strategy is OnDelete, so a former pod stays until somebody deletes it: delete one after the other, or set " +
				"RollingUpdate"
		}
		return behind
	}
	return ""
}

// Former returns a line of evidence that names the pods of earlier templates which only a person replaces; none if they are not known.
func (w Workload) Former(pods []Pod) []string {
	var names []string
	for _, pod := range pods {
		if w.OnDelete && w.Generation != "" && w.Owns(pod) && !w.newest(pod) {
			names = append(names, pod.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"former pods: " + strings.Join(names, ", ")}
}

// newest reports whether a pod of a DaemonSet is of the newest template.
func (w Workload) newest(pod Pod) bool {
	return w.Generation != "" && pod.Labels["pod-template-generation"] == w.Generation
}

// Without returns the workload and the pods as they are without nodes that are left out: a DaemonSet has a pod on each, which cannot be
// changed and need not be Ready. The status counts nodes, by the older pod of a node with two.
func (w Workload) Without(skips func(node string) bool, pods []Pod) (Workload, []Pod) {
	if w.Kind != "DaemonSet" {
		return w, pods
	}
	var others []Pod
	newest := map[string]bool{} // nodes that are left out, with whether all pods there are of the newest template
	for _, pod := range pods {
		if !skips(pod.Node) || !w.Owns(pod) {
			others = append(others, pod)
			continue
		}
		all, known := newest[pod.Node]
		newest[pod.Node] = (all || !known) && w.newest(pod)
	}
	for _, updated := range newest {
		w.Desired--
		if updated {
			w.Updated--
		}
	}
	w.LeftOut = slices.Sorted(maps.Keys(newest))
	return w, others
}

// Title names the workload, as in "Deployment flux-system/source-controller".
func (w Workload) Title() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

// Owns reports whether the workload's selector matches a pod of its namespace.
func (w Workload) Owns(pod Pod) bool {
	if pod.Namespace != w.Namespace {
		return false
	}
	for key, value := range w.Selector {
		if pod.Labels[key] != value {
			return false
		}
	}
	return len(w.Selector) > 0
}

// Events asks for the events about the workload.
func (w Workload) Events() health.Question {
	return health.Question{Kind: health.Events, Object: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

// Rollout judges whether the newest spec is rolled out and its pods are Ready. If not, the reason names the first pod that is not Ready.
func (w Workload) Rollout(pods health.Seen[Pod]) health.Result {
	subject := w.Title()
	if result, missing := pods.Unread(subject, "its pods"); missing {
		return result
	}
	ready, lost := 0, 0
	var notReady []health.Result
	for _, pod := range pods.Items {
		if !w.Owns(pod) {
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
	switch behind := w.Behind(); {
	case behind != "":
		result = health.Fail(subject, behind).WithEvidence(w.Former(pods.Items)...)
	case ready < w.Desired:
		result = health.Fail(subject, fmt.Sprintf("%d of %d pods are Ready", ready, w.Desired))
	case w.Old > 0:
		result = health.Fail(subject, fmt.Sprintf("%d pods of an older spec are still there", w.Old))
	}
	result.Lost = lost
	if result.Verdict == health.Passed {
		return result
	}
	if w.Failure != "" {
		result = result.WithEvidence(w.Kind + ": " + w.Failure)
	}
	if len(notReady) > 0 {
		pod := notReady[0]
		result.Reason += "; " + pod.Reason
		result = result.WithEvidence(pod.Evidence...).WithCommand(pod.Command).Asks(pod.Ask...)
	} else {
		result = result.WithCommand(fmt.Sprintf("kubectl -n %s describe %s %s", w.Namespace, strings.ToLower(w.Kind), w.Name))
	}
	return result.Asks(w.Events())
}
