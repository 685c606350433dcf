package live

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

// Objects returns all objects of a resource; none if the cluster does not know it.
func (c *Cluster) Objects(ctx context.Context, of schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	return c.Select(ctx, of, metav1.ListOptions{})
}

// Select returns the objects of a resource that the options select, of all namespaces; none if the cluster does not know the resource.
func (c *Cluster) Select(
	ctx context.Context, of schema.GroupVersionResource, options metav1.ListOptions,
) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	err := c.kube.ask(ctx, func(objects dynamic.Interface) error {
		list, err := objects.Resource(of).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			all = list.Items
		}
		return err
	})
	return all, err
}

// List returns the same objects, read into the type of their kind.
func List[T any](ctx context.Context, c *Cluster, of schema.GroupVersionResource, options metav1.ListOptions) ([]T, error) {
	found, err := c.Select(ctx, of, options)
	var all []T
	for i := range found {
		one, err := kubeapi.Typed[T](&found[i])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, err
}

// Patch merges a change into an object.
func (c *Cluster) Patch(ctx context.Context, of schema.GroupVersionResource, namespace, name string, change map[string]any) error {
	return c.kube.ask(ctx, func(objects dynamic.Interface) error {
		_, err := kubeapi.Merge(ctx, objects.Resource(of).Namespace(namespace), name, change)
		return err
	})
}

// Delete deletes an object, unless another one has its name by now.
func (c *Cluster) Delete(ctx context.Context, of schema.GroupVersionResource, namespace, name string, uid types.UID) error {
	err := c.kube.ask(ctx, func(objects dynamic.Interface) error {
		return objects.Resource(of).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid},
		})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
