package observe

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// Nodes returns the registered nodes as if they were declared.
func (k *Kube) Nodes(ctx context.Context) ([]gate.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := k.Objects.Resource(nodesKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var nodes []gate.Machine
	for i := range list.Items {
		node, err := kubeNode(nil, &list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", list.Items[i].GetName(), err)
		}
		found := gate.Machine{Name: node.Name, Role: cluster.Worker}
		if _, controlPlane := list.Items[i].GetLabels()["node-role.kubernetes.io/control-plane"]; controlPlane {
			found.Role = cluster.ControlPlane
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

// ClusterUID returns the UID of the namespace kube-system, which identifies a cluster: it is new in a cluster whose etcd is new.
func (k *Kube) ClusterUID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		list, err := k.Objects.Resource(namespacesKind).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + metav1.NamespaceSystem})
		if err == nil && len(list.Items) == 1 {
			return string(list.Items[0].GetUID()), nil
		}
		if pause(ctx, pollEvery); ctx.Err() != nil {
			return "", fmt.Errorf("namespace %s: cannot be read: %w", metav1.NamespaceSystem, cmp.Or(err, context.Cause(ctx)))
		}
	}
}
