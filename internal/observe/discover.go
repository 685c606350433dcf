package observe

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/health"
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
		node, err := kubeNode(nil, &list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", list.Items[i].GetName(), err)
		}
		found := health.Node{Name: node.Name, Role: health.Worker}
		if _, controlPlane := list.Items[i].GetLabels()["node-role.kubernetes.io/control-plane"]; controlPlane {
			found.Role = health.ControlPlane
		}
		if len(node.Addresses) > 0 {
			found.Address = node.Addresses[0]
		}
		if len(node.Addresses) > 1 {
			found.Address6 = node.Addresses[1]
		}
		nodes = append(nodes, found)
	}
	return nodes, nil
}
