package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// versions is the prefix of the annotations in which Talos numbers what a static pod is made from: its arguments, and its files with keys,
// certificates and settings. A change of the files alone changes nothing else in the pod.
const versions = "talos.dev/"

// StaticPods returns why a static pod of a node does not run as Talos has written it last, or is not Ready; "" if all do, and on a worker,
// which has none.
func (c *Cluster) StaticPods(ctx context.Context, node turn.Node) (problem string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*talosapi.CallTimeout)
	defer cancel()
	written, err := safe.StateListAll[*k8s.StaticPod](ctx, c.talos[node.Address].COSI)
	if err != nil || written.Len() == 0 {
		return "", talosapi.Message(err)
	}
	pods, err := List[corev1.Pod](ctx, c, kubeapi.Pods, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	if err != nil {
		return "", fmt.Errorf("the Kubernetes API does not answer: %w", err)
	}
	running := map[string]*corev1.Pod{}
	for i, pod := range pods {
		running[pod.Namespace+"/"+pod.Name] = &pods[i]
	}
	for static := range written.All() {
		meta, _ := static.TypedSpec().Pod["metadata"].(map[string]any)
		name := fmt.Sprint(meta["name"])
		if problem := StaticPodProblem(static, running[fmt.Sprintf("%v/%s-%s", meta["namespace"], name, node.Name)]); problem != "" {
			return name + " " + problem, nil
		}
	}
	return "", nil
}

// StaticPod returns the pod that stands for a static pod of a control plane; nil if there is none.
func (c *Cluster) StaticPod(ctx context.Context, node turn.Node, component string) (*corev1.Pod, error) {
	var object *unstructured.Unstructured
	err := c.kube.ask(ctx, func(objects dynamic.Interface) (err error) {
		object, err = objects.Resource(kubeapi.Pods).Namespace(metav1.NamespaceSystem).Get(ctx, component+"-"+node.Name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pod, err := kubeapi.Typed[corev1.Pod](object)
	return &pod, err
}

// StaticPodProblem returns why the pod that runs is not the static pod that Talos has written last, or is not Ready; "" if all is well. The
// kubelet copies the annotations into the pod that stands for it.
func StaticPodProblem(static *k8s.StaticPod, running *corev1.Pod) string {
	if running == nil {
		return "has no pod"
	}
	meta, _ := static.TypedSpec().Pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, versions) && running.Annotations[key] != fmt.Sprint(annotations[key]) {
			return "has not started again with its new arguments and files"
		}
	}
	if kubeapi.PodReady(running) {
		return ""
	}
	for _, container := range running.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return strings.TrimSpace(fmt.Sprintf("is not Ready: %s %s", waiting.Reason, waiting.Message))
		}
	}
	return "is not Ready"
}
