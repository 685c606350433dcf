package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// blocker is the pod that keeps Cilium's operator from being scheduled while the fault operator-missing is on.
const blocker = "keeps-cilium-operator-out"

var operatorLabels = labels.Set{"name": "cilium-operator"}

// keepOperatorOut implements the fault operator-missing. A real pod with an anti-affinity to the operator's pods, for
// all nodes of the operating system, keeps them from being scheduled. So the scheduler itself reports why they stay
// Pending, and schedules them once the fault is off.
func (c *Cluster) keepOperatorOut(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	blocked := true // a lab that has ended may have left the pod
	for {
		faults := c.o.Faults.Changed()
		on := c.operatorMissing()
		var err error
		switch {
		case on:
			err = c.block(ctx)
			blocked = true
		case blocked:
			if err = c.unblock(ctx); err == nil {
				blocked = false
			}
		}
		var again <-chan time.Time
		if err != nil && ctx.Err() == nil {
			c.log.Debug("fault operator-missing", "err", err)
			again = time.After(retry)
		}
		pokes := c.pokes
		if !on {
			pokes = nil // changes of nodes matter only while the fault is on
		}
		select {
		case <-ctx.Done():
			return
		case <-faults:
		case <-pokes:
		case <-again:
		}
	}
}

// block creates the blocking pod on a node, and deletes the operator's pods that have a node. Without a node there is
// nothing to do yet.
func (c *Cluster) block(ctx context.Context) error {
	pods := c.client.CoreV1().Pods(metav1.NamespaceSystem)
	if _, err := c.pods.Pods(metav1.NamespaceSystem).Get(blocker); err != nil {
		nodes, _ := c.nodes.List(labels.Everything()) // from the cache: never an error
		if len(nodes) == 0 {
			return nil
		}
		if _, err := pods.Create(ctx, blockerPod(nodes[0].Name), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	// The scheduler sees pods in the order of creation, so it does not schedule the operator's pods after the blocker.
	list, _ := c.pods.Pods(metav1.NamespaceSystem).List(operatorLabels.AsSelector())
	for _, p := range list {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// unblock deletes the blocking pod, and the operator's pending pods. When a pod is deleted, the scheduler retries pods with an
// anti-affinity to it, but not pods to which it had one, which would wait for minutes. Their controller creates new ones at once.
func (c *Cluster) unblock(ctx context.Context) error {
	pods := c.client.CoreV1().Pods(metav1.NamespaceSystem)
	err := pods.Delete(ctx, blocker, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if apierrors.IsNotFound(err) {
		return nil // there was no blocker
	}
	list, _ := c.pods.Pods(metav1.NamespaceSystem).List(operatorLabels.AsSelector())
	for _, p := range list {
		if p.Spec.NodeName == "" && err == nil {
			if err = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); apierrors.IsNotFound(err) {
				err = nil
			}
		}
	}
	return err
}

func blockerPod(node string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace = blocker, metav1.NamespaceSystem
	p.Annotations = map[string]string{"description": "the lab's fault operator-missing"}
	p.Spec = corev1.PodSpec{
		NodeName: node, HostNetwork: true,
		PriorityClassName: "system-node-critical", // above the operator's own, so that the scheduler does not preempt the blocker for it
		Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: metav1.SetAsLabelSelector(operatorLabels), TopologyKey: corev1.LabelOSStable}}}},
		Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}},
	}
	return p
}
