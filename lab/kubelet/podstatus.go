package kubelet

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podView is what a kubelet knows of a pod. The pod's status is derived from it.
type podView struct {
	pod         *corev1.Pod
	host        []netip.Addr // the node's addresses
	now         metav1.Time
	sandbox     *sandbox // nil: no sandbox yet
	initialized bool     // all init containers have succeeded
}

// status returns the pod's status. What did not change keeps its times.
func (v *podView) status() corev1.PodStatus {
	s := *v.pod.Status.DeepCopy()
	if s.StartTime == nil {
		s.StartTime = &v.now
	}
	s.HostIP, s.HostIPs = v.host[0].String(), nil
	for _, a := range v.host {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: a.String()})
	}
	if v.sandbox != nil {
		s.PodIP, s.PodIPs = v.sandbox.ips[0].String(), nil
		for _, ip := range v.sandbox.ips {
			s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip.String()})
		}
	}
	s.InitContainerStatuses = v.containers(v.pod.Spec.InitContainers, true)
	s.ContainerStatuses = v.containers(v.pod.Spec.Containers, false)
	s.Phase = v.phase(s)
	v.conditions(&s)
	return s
}

func (v *podView) containers(specs []corev1.Container, init bool) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, spec := range specs {
		out = append(out, v.container(spec, init))
	}
	return out
}

func (v *podView) container(spec corev1.Container, init bool) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: new(false)}
	var c container
	known := false
	if v.sandbox != nil {
		c, known = v.sandbox.get(spec.Name)
	}
	if !known {
		reason := "PodInitializing"
		if v.sandbox == nil && (init || len(v.pod.Spec.InitContainers) == 0) {
			reason = "ContainerCreating"
		}
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
		// The status of a container before a reboot stays until the container runs again; its restart count continues.
		if old := v.before(spec.Name); old.ContainerID != "" {
			s.ContainerID, s.ImageID, s.RestartCount, s.LastTerminationState = old.ContainerID, old.ImageID, old.RestartCount, old.LastTerminationState
		}
		return s
	}
	s.RestartCount = c.restarts
	if c.last != nil {
		s.LastTerminationState.Terminated = c.last
	}
	sidecar := init && spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
	switch {
	case c.instance != nil:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started.Truncate(1e9))}
		s.Started, s.Ready = new(true), c.instance.Ready() && (!init || sidecar)
		s.ImageID, s.ContainerID = "lab.invalid/"+spec.Image, containerID(v.pod, c.restarts)
	case c.ended != nil && c.waiting.Reason != "": // it waits for its next run, after any exit code
		s.State.Waiting = &c.waiting
		s.LastTerminationState.Terminated = c.ended
		s.ImageID, s.ContainerID = "lab.invalid/"+spec.Image, c.ended.ContainerID
	case c.ended != nil:
		s.State.Terminated = c.ended
		s.Ready = init && c.ended.ExitCode == 0
		s.ImageID, s.ContainerID = "lab.invalid/"+spec.Image, c.ended.ContainerID
	default:
		w := c.waiting
		if w.Reason == "" {
			w.Reason = "ContainerCreating"
		}
		s.State.Waiting = &w
	}
	return s
}

// before is the container's status in the API server.
func (v *podView) before(name string) corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{v.pod.Status.InitContainerStatuses, v.pod.Status.ContainerStatuses} {
		for _, s := range list {
			if s.Name == name {
				return s
			}
		}
	}
	return corev1.ContainerStatus{}
}

func (v *podView) phase(s corev1.PodStatus) corev1.PodPhase {
	policy := v.pod.Spec.RestartPolicy
	for _, c := range s.InitContainerStatuses {
		if policy == corev1.RestartPolicyNever && c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 {
			return corev1.PodFailed
		}
	}
	if !v.initialized {
		return corev1.PodPending
	}
	ended, failed, started := 0, false, false
	for _, c := range s.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			ended++
			failed = failed || t.ExitCode != 0
		}
		started = started || c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
	}
	switch {
	case ended == len(s.ContainerStatuses) && failed && policy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	case ended == len(s.ContainerStatuses) && !failed && policy != corev1.RestartPolicyAlways:
		return corev1.PodSucceeded
	case started:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func (v *podView) conditions(s *corev1.PodStatus) {
	done := s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
	ready := !done && v.initialized
	for _, c := range s.ContainerStatuses {
		ready = ready && c.Ready
	}
	why := ""
	switch {
	case s.Phase == corev1.PodSucceeded:
		why = "PodCompleted"
	case s.Phase == corev1.PodFailed:
		why = "PodFailed"
	case !ready:
		why = "ContainersNotReady"
	}
	initReason := ""
	if !v.initialized {
		initReason = "ContainersNotInitialized"
	}
	v.condition(s, corev1.PodReadyToStartContainers, v.sandbox != nil && !done, "")
	v.condition(s, corev1.PodInitialized, v.initialized, initReason)
	v.condition(s, corev1.ContainersReady, ready, why)
	v.condition(s, corev1.PodReady, ready, why)
}

func (v *podView) condition(s *corev1.PodStatus, t corev1.PodConditionType, is bool, reason string) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
		reason = ""
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			if s.Conditions[i].Status != status {
				s.Conditions[i].LastTransitionTime = v.now
			}
			s.Conditions[i].Status, s.Conditions[i].Reason = status, reason
			return
		}
	}
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: v.now})
}
