package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/workload"
)

// StaticPod is a component of the control plane on a node.
type StaticPod struct {
	Name  string // e.g. kube-apiserver
	Image string
	Hash  string // of what the pod is made from; a pod with another hash is another pod
	// Annotations are those in which Talos numbers what the pod is made from.
	Annotations map[string]string
	Runs        bool // its program runs; until then its container does not start
	Ends        bool // its program has ended at its start
}

// resources of the components' pods, as Talos requests them.
var staticResources = map[string]struct{ cpu, memory string }{
	"kube-apiserver":          {"200m", "512Mi"},
	"kube-controller-manager": {"50m", "256Mi"},
	"kube-scheduler":          {"10m", "64Mi"},
}

// staticPods are the node's static pods: those of the options, or all components in the kubelet's version.
func (o NodeOptions) staticPods() []StaticPod {
	if o.StaticPods != nil {
		return o.StaticPods()
	}
	var pods []StaticPod
	for _, name := range slices.Sorted(maps.Keys(staticResources)) {
		pods = append(pods, StaticPod{Name: name, Image: "registry.k8s.io/" + name + ":" + o.KubernetesVersion, Runs: true})
	}
	return pods
}

// StaticPodsChanged makes the kubelet look at its static pods again.
func (k *Kubelet) StaticPodsChanged() { workload.Poke(k.statics) }

// keepStaticPods keeps the mirror pods of the control plane's static pods. Their programs run as processes (package kube), which also
// have the logs. A pod that has changed is deleted and created, as a kubelet does.
func (k *Kubelet) keepStaticPods(ctx context.Context) {
	for ctx.Err() == nil {
		var again <-chan time.Time
		for _, pod := range k.o.staticPods() {
			if err := k.keepMirrorPod(ctx, pod); err != nil {
				k.log.Debug("mirror pod not written yet", "pod", pod.Name, "err", err)
				again = time.After(retry)
			}
		}
		k.wakePods()
		select {
		case <-ctx.Done():
		case <-again:
		case <-k.statics:
		}
	}
}

func (k *Kubelet) keepMirrorPod(ctx context.Context, static StaticPod) error {
	pods, want := k.c.client.CoreV1().Pods(metav1.NamespaceSystem), k.mirrorPod(static)
	_, err := pods.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := pods.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil || have.Annotations[corev1.MirrorPodAnnotationKey] == want.Annotations[corev1.MirrorPodAnnotationKey] {
		return err
	}
	err = pods.Delete(ctx, want.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &have.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = pods.Create(ctx, want, metav1.CreateOptions{})
	return err
}

// held tells whether a mirror pod's program does not run yet, and whether it has ended at its start.
func (k *Kubelet) held(pod *corev1.Pod) (held, ends bool) {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return false, false
	}
	for _, s := range k.o.staticPods() {
		if s.Name+"-"+k.o.Name == pod.Name {
			return !s.Runs, !s.Runs && s.Ends
		}
	}
	return false, false
}

func (k *Kubelet) mirrorPod(static StaticPod) *corev1.Pod {
	component, image := static.Name, static.Image
	cpu, memory := staticResources[component].cpu, staticResources[component].memory
	sum := sha256.Sum256([]byte(component + image + static.Hash + k.o.Name))
	hash := hex.EncodeToString(sum[:16])
	p := &corev1.Pod{}
	p.Name, p.Namespace = component+"-"+k.o.Name, metav1.NamespaceSystem
	p.Labels = map[string]string{"tier": "control-plane", "k8s-app": component, "component": component,
		"app.kubernetes.io/name": component, "app.kubernetes.io/version": image[strings.LastIndex(image, ":")+1:],
		"app.kubernetes.io/component":  "control-plane",
		"app.kubernetes.io/managed-by": "Talos"}
	p.Annotations = map[string]string{"kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash,
		"kubernetes.io/config.source": "http", "kubernetes.io/config.seen": time.Now().UTC().Format(time.RFC3339Nano)}
	maps.Copy(p.Annotations, static.Annotations)
	owner := k.node
	owner.Controller = new(true)
	p.OwnerReferences = []metav1.OwnerReference{owner}
	p.Spec = corev1.PodSpec{
		NodeName: k.o.Name, HostNetwork: true, PriorityClassName: "system-cluster-critical", Priority: new(criticalPriority),
		EnableServiceLinks: new(false),
		Tolerations:        []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		Containers: []corev1.Container{{Name: component, Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}},
	}
	return p
}
