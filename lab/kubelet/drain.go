package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/wait"
)

// evictionGrace is the grace period, in seconds, that Talos asks for when it evicts a pod.
const evictionGrace = int64(60)

// Cordon makes the node unschedulable, as Talos does before it drains, and returns once it is. A node that somebody else has cordoned
// is left as it is.
func (k *Kubelet) Cordon(ctx context.Context) error {
	k.cordoned.Store(true)
	k.metadataChanged()
	for {
		if n, err := k.c.nodes.Get(k.o.Name); err == nil && n.Spec.Unschedulable {
			return nil
		}
		if !wait.Pause(ctx, retry) {
			return ctx.Err()
		}
	}
}

// applyCordoned sets and removes Talos's cordon, which an annotation marks. The cordon of somebody else stays.
func applyCordoned(n *corev1.Node, cordon bool) {
	_, own := n.Annotations[constants.AnnotationCordonedKey]
	switch {
	case cordon && !n.Spec.Unschedulable:
		n.Spec.Unschedulable = true
		n.Annotations[constants.AnnotationCordonedKey] = constants.AnnotationCordonedValue
	case !cordon && n.Spec.Unschedulable && own:
		n.Spec.Unschedulable = false
		delete(n.Annotations, constants.AnnotationCordonedKey)
	}
}

// Drain evicts the node's pods with the node's own credentials, as Talos does: not those of DaemonSets, mirror pods, and pods without a
// controller. It waits until they are gone. A pod that cannot be evicted before ctx ends stays, and that is no error.
func (k *Kubelet) Drain(ctx context.Context, log func(string)) error {
	pods, err := k.own.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.o.Name})
	if err != nil {
		return fmt.Errorf("cannot get pods for node %s: %w", k.o.Name, err)
	}
	var all sync.WaitGroup
	for _, pod := range pods.Items {
		owner := metav1.GetControllerOf(&pod)
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		switch {
		case pod.Spec.NodeName != k.o.Name: // a test's API server does not select
		case mirror:
			log(fmt.Sprintf("skipping mirror pod %s/%s", pod.Namespace, pod.Name))
		case owner == nil:
			log(fmt.Sprintf("skipping unmanaged pod %s/%s", pod.Namespace, pod.Name))
		case owner.Kind == appsv1.SchemeGroupVersion.WithKind("DaemonSet").Kind:
			log(fmt.Sprintf("skipping DaemonSet pod %s/%s", pod.Namespace, pod.Name))
		default:
			all.Go(func() {
				if err := k.evict(ctx, pod); err != nil {
					log(fmt.Sprintf("WARNING: failed to evict pod: %v", err))
				}
			})
		}
	}
	all.Wait()
	return nil
}

// evict asks for the eviction of a pod until a PodDisruptionBudget allows it, and waits until the pod is gone. The pauses are those of
// Talos in the same proportion to the limit of the drain: 5 s and 3 s of 5 minutes.
func (k *Kubelet) evict(ctx context.Context, pod corev1.Pod) error {
	limit, grace := k.c.o.Latency.DrainLimit, evictionGrace
	for {
		err := k.own.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace},
		})
		switch {
		case apierrors.IsTooManyRequests(err):
			if !wait.Pause(ctx, limit/60) {
				return fmt.Errorf("failed to evict pod %s/%s: %w", pod.Namespace, pod.Name, ctx.Err())
			}
			continue
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("failed to evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		return k.awaitDeleted(ctx, pod, limit)
	}
}

func (k *Kubelet) awaitDeleted(ctx context.Context, pod corev1.Pod, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit/5)
	defer cancel()
	for {
		have, err := k.own.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && have.UID != pod.UID {
			return nil
		}
		if !wait.Pause(ctx, limit/100) {
			return fmt.Errorf("failed waiting on pod %s/%s to be deleted: pod is still running on the node", pod.Namespace, pod.Name)
		}
	}
}
