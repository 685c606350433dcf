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

// blocker is the pod that keeps Cilium's operator off every node while the fault operator-missing is on.
const blocker = "keeps-cilium-operator-out"

var operatorLabels = labels.Set{"name": "cilium-operator"}

// keepOperatorOut makes the fault operator-missing. What holds the operator's pods off is real: a pod that does not bear
// one of them in the same place, the place being all nodes of the operating system. So the scheduler itself says why the
// pods stay Pending, and schedules them as soon as the fault is lifted.
func (c *Cluster) keepOperatorOut(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	blocked := true // perhaps by a lab that has ended since
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
			pokes = nil // nodes matter only while there is something to keep out
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

// block puts the pod on a node, and takes away the operator's pods that have a node. Without a node there is nothing to
// keep out yet.
func (c *Cluster) block(ctx context.Context) error {
	pods := c.client.CoreV1().Pods(metav1.NamespaceSystem)
	if _, err := c.pods.Pods(metav1.NamespaceSystem).Get(blocker); err != nil {
		nodes, _ := c.nodes.List(labels.Everything()) // from memory: never an error
		if len(nodes) == 0 {
			return nil
		}
		if _, err := pods.Create(ctx, blockerPod(nodes[0].Name), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	// The scheduler sees the pods in the order of their writing: whatever comes after the blocker stays out.
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

// unblock takes the pod away, and the pods that it kept out: the scheduler tries a pod again when one goes that the pod
// itself did not bear, and not when one goes that did not bear the pod, so they would wait for minutes. Their controller
// makes new ones at once.
func (c *Cluster) unblock(ctx context.Context) error {
	zero := int64(0)
	pods := c.client.CoreV1().Pods(metav1.NamespaceSystem)
	err := pods.Delete(ctx, blocker, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	if apierrors.IsNotFound(err) {
		return nil // nothing was kept out
	}
	list, _ := c.pods.Pods(metav1.NamespaceSystem).List(operatorLabels.AsSelector())
	for _, p := range list {
		if p.Spec.NodeName == "" && err == nil {
			if err = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); apierrors.IsNotFound(err) {
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
		PriorityClassName: "system-node-critical", // above the operator's own, so that the scheduler does not clear it away for it
		Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: metav1.SetAsLabelSelector(operatorLabels), TopologyKey: corev1.LabelOSStable}}}},
		Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}},
	}
	return p
}
