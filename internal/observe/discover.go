package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// Nodes returns the registered nodes as if they were declared. Its error names every node that has no address.
func (k *Kube) Nodes(ctx context.Context) ([]gate.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := k.Objects.Resource(kubeapi.Nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var nodes []gate.Machine
	var problems []error
	for i := range list.Items {
		found, err := machineOf(&list.Items[i])
		if err != nil {
			problems = append(problems, fmt.Errorf("node %s: %w", list.Items[i].GetName(), err))
		}
		nodes = append(nodes, found)
	}
	return nodes, errors.Join(problems...)
}

// machineOf returns the machine of a Node.
func machineOf(object *unstructured.Unstructured) (gate.Machine, error) {
	node, err := kubeNode(nil, object)
	if err != nil {
		return gate.Machine{}, err
	}
	if len(node.Addresses) == 0 {
		return gate.Machine{}, errors.New("has no InternalIP; look whether its kubelet runs, or delete the Node if its machine is gone")
	}
	found := gate.Machine{Name: node.Name, Role: cluster.Worker, Address: node.Addresses[0]}
	if _, controlPlane := object.GetLabels()["node-role.kubernetes.io/control-plane"]; controlPlane {
		found.Role = cluster.ControlPlane
	}
	if len(node.Addresses) > 1 {
		found.Address6 = node.Addresses[1]
	}
	return found, nil
}

// ClusterUID returns the UID of the namespace kube-system, which identifies a cluster: it is new in a cluster whose etcd is new.
func (k *Kube) ClusterUID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	system := metav1.ListOptions{FieldSelector: "metadata.name=" + metav1.NamespaceSystem}
	for {
		list, err := k.Objects.Resource(kubeapi.Namespaces).List(ctx, system)
		if err == nil && len(list.Items) == 1 {
			return string(list.Items[0].GetUID()), nil
		}
		if pause(ctx, pollEvery); ctx.Err() != nil {
			return "", fmt.Errorf("namespace %s: cannot be read: %w", metav1.NamespaceSystem, cmp.Or(err, context.Cause(ctx)))
		}
	}
}
