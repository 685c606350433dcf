package kubelet

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kubelet's messages about pods that it ends because the machine stops.
const (
	shutdownReason  = "Terminated"
	shutdownMessage = "Pod was terminated in response to imminent node shutdown."
	shuttingDown    = "node is shutting down"
	rejectedReason  = "NodeShutdown"
	rejectedMessage = "Pod was rejected as the node is shutting down."
)

// Talos sets shutdownGracePeriod to 30 s, and shutdownGracePeriodCriticalPods to 10 s of them.
const (
	shutdownGrace         = 20 * time.Second
	shutdownGraceCritical = 10 * time.Second
	criticalPriority      = int32(2000000000)
)

// statusTimeout is how long the status of a pod or node may take while the node shuts down.
const statusTimeout = 2 * time.Second

// Shutdown ends the node's pods as a kubelet does before the machine stops: it says that the node is not ready, ends the pods within
// their grace periods, critical ones last, and marks them as failed, so that their controllers replace them. Then it ends itself.
func (k *Kubelet) Shutdown(ctx context.Context) {
	k.shutting.Store(true)
	k.logLine("Shutdown manager detected new shutdown event, isNodeShuttingDownNow")
	writing, cancel := context.WithTimeout(ctx, statusTimeout)
	if err := k.writeStatus(writing, readiness{message: shuttingDown}); err != nil {
		k.log.Debug("node status not written", "err", err)
	}
	cancel()
	for _, critical := range []bool{false, true} {
		grace := shutdownGrace
		if critical {
			grace = shutdownGraceCritical
		}
		var all sync.WaitGroup
		for _, pod := range k.c.podsOf(k.o.Name) {
			if (pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority) == critical {
				all.Go(func() { k.shutDownPod(ctx, pod, grace) })
			}
		}
		all.Wait()
	}
	k.Kill()
}

func (k *Kubelet) shutDownPod(ctx context.Context, pod *corev1.Pod, grace time.Duration) {
	k.mu.Lock()
	w := k.workers[pod.UID]
	k.mu.Unlock()
	if w == nil || !w.admitted.Load() || hasEnded(pod.Status) {
		return
	}
	s := k.runtime.sandbox(pod.UID)
	if s != nil {
		w.stop(ctx, pod, s, grace)
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror || pod.DeletionTimestamp != nil {
		return
	}
	view := &podView{pod: pod, host: k.o.Addresses, now: metav1.NewTime(time.Now().Truncate(time.Second)), sandbox: s, initialized: s != nil}
	status := view.status()
	status.Phase, status.Reason, status.Message = corev1.PodFailed, shutdownReason, shutdownMessage
	view.conditions(&status)
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonTerminationByKubelet, Message: shutdownMessage, LastTransitionTime: view.now})
	writing, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := w.write(writing, pod, status); err != nil {
		k.log.Debug("pod status not written", "pod", w.key, "err", err)
	}
}

// stop ends the containers of a pod within the grace period, or within its own if that is shorter.
func (w *podWorker) stop(ctx context.Context, pod *corev1.Pod, s *sandbox, grace time.Duration) {
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, time.Duration(*own)*time.Second)
	}
	s.stop(ctx, grace)
	s.mu.Lock()
	for _, c := range s.containers {
		if c.instance != nil {
			w.recordExit(pod, c)
			c.waiting = corev1.ContainerStateWaiting{}
		}
	}
	s.mu.Unlock()
}

// reject marks a pod that has come while the node shuts down as failed, so that its controller makes another one (HandlePodAdditions and
// the admission of nodeshutdown_manager_linux.go).
func (w *podWorker) reject(ctx context.Context, pod *corev1.Pod) (next time.Duration, done bool) {
	w.warn(ctx, pod, rejectedReason, rejectedMessage)
	status := corev1.PodStatus{
		QOSClass: pod.Status.QOSClass, Phase: corev1.PodFailed, Reason: rejectedReason, Message: "Pod was rejected: " + rejectedMessage,
	}
	if err := w.write(ctx, pod, status); err != nil {
		return retry, false
	}
	w.ended = true
	return 0, false
}
