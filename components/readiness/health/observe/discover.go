package observe

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/components/readiness/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Nodes are the nodes that are registered now, for somebody who has no declaration at hand.
func (k *Kube) Nodes(ctx context.Context) ([]health.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := k.client.Resource(nodesKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var nodes []health.Node
	for i := range list.Items {
		node, err := typed[corev1.Node](&list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", list.Items[i].GetName(), err)
		}
		found := health.Node{Name: node.Name, Role: health.Worker}
		if _, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]; controlPlane {
			found.Role = health.ControlPlane
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP && found.Address == "" {
				found.Address = address.Address
			}
		}
		nodes = append(nodes, found)
	}
	return nodes, nil
}
