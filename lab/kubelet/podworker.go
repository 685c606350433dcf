package kubelet

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/lab/workload"
)

// podWorker makes one pod match its object. It checks whenever something changed: the object, a container, the node's
// network, a fault, or at a time that it has set itself.
type podWorker struct {
	k    *Kubelet
	key  cache.ObjectName
	uid  types.UID
	wake chan struct{}

	admitted atomic.Bool // the kubelet has seen the pod before it shut down

	written map[string]bool // events that have been written
	ended   bool            // the pod has ended, and its status says so; the cache may not have it yet
}

func (w *podWorker) poke() { workload.Poke(w.wake) }

// run works until the pod is deleted or ctx ends.
func (w *podWorker) run(ctx context.Context) {
	w.written = map[string]bool{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		faults := w.k.c.o.Faults.Changed()
		next, done := w.step(ctx)
		if done {
			return
		}
		if next > 0 {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		case <-faults:
			w.shortenBackoff()
		}
	}
}

// step does what can be done now and writes the status. It returns when to check again (0: when woken), and whether the
// pod is finished.
func (w *podWorker) step(ctx context.Context) (next time.Duration, done bool) {
	pod, err := w.k.c.pods.Pods(w.key.Namespace).Get(w.key.Name)
	if err != nil || pod.UID != w.uid {
		w.discard(ctx, 0) // deleted by force, or replaced
		if !w.unmountClaims(ctx) && ctx.Err() == nil {
			return 4 * retry, false
		}
		return 0, true
	}
	if pod.DeletionTimestamp != nil {
		return w.terminate(ctx, pod)
	}
	if w.k.shutting.Load() {
		if w.admitted.Load() || w.ended || hasEnded(pod.Status) {
			return 0, false // see shutDownPod
		}
		return w.reject(ctx, pod)
	}
	w.admitted.Store(true)
	if w.ended || hasEnded(pod.Status) {
		if !w.unmountClaims(ctx) {
			return 4 * retry, false
		}
		return 0, false
	}
	view := &podView{pod: pod, host: w.k.o.Addresses, now: metav1.NewTime(time.Now().Truncate(time.Second))}
	next = w.advance(ctx, pod, view)
	status := view.status()
	if ctx.Err() != nil {
		return 0, true // the kubelet has ended: it writes nothing any more
	}
	agent := pod.Labels["k8s-app"] == "cilium"
	if agent && slices.ContainsFunc(status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }) {
		w.k.agentStarts()
	}
	w.k.agentReady(w.uid, agent && podReady(&status))
	if equality.Semantic.DeepEqual(status, pod.Status) {
		return next, false
	}
	if err := w.write(ctx, pod, status); err != nil {
		w.k.log.Debug("pod status not written", "pod", w.key, "err", err)
		return retry, false
	}
	if hasEnded(status) {
		w.ended = true
		w.discard(ctx, 0)
		if !w.unmountClaims(ctx) {
			return 4 * retry, false
		}
	}
	return next, false
}

func hasEnded(status corev1.PodStatus) bool {
	return status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed
}

// write sets the pod's status. After a conflict it retries once with the current object.
func (w *podWorker) write(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	pods := w.k.c.client.CoreV1().Pods(pod.Namespace)
	update := pod.DeepCopy()
	update.Status = status
	_, err := pods.UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		return ignoreNotFound(err)
	}
	newest, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || newest.UID != pod.UID {
		return ignoreNotFound(err)
	}
	newest.Status = status
	_, err = pods.UpdateStatus(ctx, newest, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// terminate ends a deleted pod gracefully, then removes its object.
func (w *podWorker) terminate(ctx context.Context, pod *corev1.Pod) (time.Duration, bool) {
	grace := 30 * time.Second
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	w.k.agentReady(w.uid, false)
	w.discard(ctx, grace)
	if ctx.Err() != nil {
		return 0, true
	}
	if !w.unmountClaims(ctx) {
		return 4 * retry, false // as with a kubelet, the object stays until its volumes are unmounted
	}
	err := w.k.c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.k.log.Debug("pod not removed", "pod", w.key, "err", err)
		return retry, false
	}
	return 0, true
}

// discard ends the pod's containers and frees its address.
func (w *podWorker) discard(ctx context.Context, grace time.Duration) {
	s := w.k.runtime.sandbox(w.uid)
	if s == nil {
		return
	}
	s.stop(ctx, grace)
	w.k.runtime.remove(w.uid)
	removePodFiles(w.k.c.podDir(w.key, w.uid))
}

// shortenBackoff makes crashed containers start soon, and images be pulled again soon, so that the effects of a fault
// end soon after the fault. A short back-off stays.
func (w *podWorker) shortenBackoff() {
	s := w.k.runtime.sandbox(w.uid)
	if s == nil {
		return
	}
	soon := time.Now().Add(w.k.c.o.Latency.PodStart)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.containers {
		for _, at := range []*time.Time{&c.retryAt, &c.pulls.retryAt} {
			if at.After(soon) {
				*at = soon
			}
		}
	}
}

func podReady(s *corev1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
