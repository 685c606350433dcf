package kube

import (
	"fmt"

	"github.com/slipway-platform/slipway/internal/health"
)

// Workload is the state of the rollout of a Deployment, StatefulSet or DaemonSet.
//
// It is judged here and not by cli-utils' kstatus. There a Deployment is Current only once all replicas are available, so with one node the
// gate would never open: one of Cilium's two operators stays Pending.
type Workload struct {
	Kind, Namespace, Name string
	Release               string            // the Helm release that owns it, "" without one
	Selector              map[string]string // labels of its pods
	Observed              bool              // the controller has seen the newest spec
	Desired, Updated, Old int               // pods wanted; pods of the newest template; pods of earlier templates
	Failure               string            // why its controller cannot create pods; "" if it reports nothing
}

// Kinds are the kinds of workloads.
var Kinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// Behind returns why the newest spec is not rolled out; "" if there are as many pods of it as wanted, Ready or not.
func (w Workload) Behind() string {
	switch {
	case !w.Observed:
		return "its controller has not seen the newest spec yet"
	case w.Updated < w.Desired:
		return fmt.Sprintf("%d of %d pods are of the newest spec", w.Updated, w.Desired)
	}
	return ""
}

// Owns reports whether the workload's selector matches a pod.
func (w Workload) Owns(pod Pod) bool {
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
