package live

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/cluster"
)

// CiliumImages returns the images of Cilium's agents: of their pods, and those that their DaemonSet is changing them to; none without
// Cilium.
func (c *Cluster) CiliumImages(ctx context.Context) ([]string, error) {
	var images []string
	add := func(containers []corev1.Container) {
		for _, container := range containers {
			if container.Name == cluster.CiliumAgentContainer {
				images = append(images, container.Image)
			}
		}
	}
	list := metav1.ListOptions{LabelSelector: cluster.CiliumAgentSelector}
	err := c.kube.ask(ctx, func(objects dynamic.Interface) error {
		images = nil
		agents, err := objects.Resource(pods).Namespace(metav1.NamespaceSystem).List(ctx, list)
		if err != nil {
			return err
		}
		for i := range agents.Items {
			pod, err := typed[corev1.Pod](&agents.Items[i])
			if err != nil {
				return err
			}
			add(pod.Spec.Containers)
		}
		sets, err := objects.Resource(daemonSets).Namespace(metav1.NamespaceSystem).List(ctx, list)
		if err != nil {
			return err
		}
		for i := range sets.Items {
			set, err := typed[appsv1.DaemonSet](&sets.Items[i])
			if err != nil {
				return err
			}
			add(set.Spec.Template.Spec.Containers)
		}
		return nil
	})
	return images, err
}
