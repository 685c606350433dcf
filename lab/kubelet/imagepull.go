package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/lab/kube/process"
)

// pullImage pulls a container's image, unless the node has it. Until then it returns when to check again, and the
// container waits with a kubelet's reason. An image that the node has is never pulled again, whatever its pull policy.
// The caller holds the sandbox's lock.
func (w *podWorker) pullImage(ctx context.Context, pod *corev1.Pod, spec corev1.Container, c *container) (next time.Duration, here bool) {
	if wait := time.Until(c.pulls.retryAt); wait > 0 {
		if c.pulls.problem != "" {
			message := fmt.Sprintf("Back-off pulling image %q", spec.Image)
			w.event(ctx, pod, corev1.EventTypeNormal, "BackOff", message)
			w.warn(ctx, pod, "Failed", "Error: ImagePullBackOff")
			c.waiting = corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: message + ": ErrImagePull: " + c.pulls.problem}
		}
		return wait, false
	}
	left, problem := w.k.runtime.pull(spec.Image, w.k.c.o.Latency.ImagePull, func() string { return w.k.c.pullError(spec.Image) })
	switch {
	case problem != "":
		c.pulls.failures++
		c.pulls.problem, c.pulls.retryAt = problem, time.Now().Add(process.Backoff(c.pulls.failures))
		w.event(ctx, pod, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", spec.Image))
		w.warn(ctx, pod, "Failed", fmt.Sprintf("Failed to pull image %q: %s", spec.Image, problem))
		w.warn(ctx, pod, "Failed", "Error: ErrImagePull")
		w.k.logLine("Failed to pull image", "image", spec.Image, "pod", w.key.String(), "err", problem)
		c.waiting = corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: problem}
		return retry, false // the next call reports the back-off
	case left > 0:
		return left, false
	}
	c.pulls = pulls{}
	return 0, true
}
