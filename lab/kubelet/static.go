package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// staticPods creates the mirror pods of the control plane's static pods. Their programs run once per cluster, as
// processes (package kube), which also have the logs.
func (k *Kubelet) staticPods(ctx context.Context) {
	for _, component := range []struct{ name, image, cpu, memory string }{
		{"kube-apiserver", "registry.k8s.io/kube-apiserver", "200m", "512Mi"},
		{"kube-controller-manager", "registry.k8s.io/kube-controller-manager", "50m", "256Mi"},
		{"kube-scheduler", "registry.k8s.io/kube-scheduler", "10m", "64Mi"},
	} {
		pod := k.mirrorPod(component.name, component.image+":"+k.o.KubernetesVersion, component.cpu, component.memory)
		for {
			_, err := k.c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
			k.log.Debug("mirror pod not created yet", "pod", pod.Name, "err", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(retry):
			}
		}
	}
}

func (k *Kubelet) mirrorPod(component, image, cpu, memory string) *corev1.Pod {
	sum := sha256.Sum256([]byte(component + image + k.o.Name))
	hash := hex.EncodeToString(sum[:16])
	yes, priority := true, int32(2000000000)
	p := &corev1.Pod{}
	p.Name, p.Namespace = component+"-"+k.o.Name, metav1.NamespaceSystem
	p.Labels = map[string]string{"tier": "control-plane", "k8s-app": component, "component": component,
		"app.kubernetes.io/name": component, "app.kubernetes.io/version": k.o.KubernetesVersion, "app.kubernetes.io/component": "control-plane",
		"app.kubernetes.io/managed-by": "Talos"}
	p.Annotations = map[string]string{"kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash,
		"kubernetes.io/config.source": "http", "kubernetes.io/config.seen": time.Now().UTC().Format(time.RFC3339Nano)}
	owner, no := k.node, false
	owner.Controller = &yes
	p.OwnerReferences = []metav1.OwnerReference{owner}
	p.Spec = corev1.PodSpec{
		NodeName: k.o.Name, HostNetwork: true, PriorityClassName: "system-cluster-critical", Priority: &priority, EnableServiceLinks: &no,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		Containers: []corev1.Container{{Name: component, Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}},
	}
	return p
}
