package live

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

// CiliumImages returns the images of Cilium's agents: of their pods, and those that their DaemonSet is changing them to; none without
// Cilium.
func (c *Cluster) CiliumImages(ctx context.Context) ([]string, error) {
	agents := metav1.ListOptions{LabelSelector: cluster.CiliumAgentSelector, FieldSelector: "metadata.namespace=" + metav1.NamespaceSystem}
	pods, err := List[corev1.Pod](ctx, c, kubeapi.Pods, agents)
	if err != nil {
		return nil, err
	}
	sets, err := List[appsv1.DaemonSet](ctx, c, kubeapi.DaemonSets, agents)
	if err != nil {
		return nil, err
	}
	var images []string
	add := func(containers []corev1.Container) {
		for _, container := range containers {
			if container.Name == cluster.CiliumAgentContainer {
				images = append(images, container.Image)
			}
		}
	}
	for _, pod := range pods {
		add(pod.Spec.Containers)
	}
	for _, set := range sets {
		add(set.Spec.Template.Spec.Containers)
	}
	return images, nil
}
