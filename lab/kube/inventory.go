package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// owningInventory is the annotation of the objects in an inventory, with its name.
const owningInventory = "config.k8s.io/owning-inventory"

// inventory is the list of what Talos has created of the manifests, by the keys of the inventory's ConfigMap.
type inventory map[string]bool

// key is an object's key in an inventory.
func key(o *unstructured.Unstructured) string {
	kind, name := o.GroupVersionKind(), o.GetName()
	if kind.Group == "rbac.authorization.k8s.io" {
		name = strings.ReplaceAll(name, ":", "__")
	}
	return strings.Join([]string{o.GetNamespace(), name, kind.Group, kind.Kind}, "_")
}

// inventories returns the client of the inventory's ConfigMap.
func inventories(dyn dynamic.Interface) dynamic.ResourceInterface {
	return dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(constants.KubernetesInventoryNamespace)
}

func inventoryMap(keys inventory) *unstructured.Unstructured {
	data := map[string]any{}
	for one := range keys {
		data[one] = ""
	}
	o := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	o.SetNamespace(constants.KubernetesInventoryNamespace)
	o.SetName(constants.KubernetesBootstrapManifestsInventoryName)
	return o
}

// readInventory returns the inventory, and creates it if there is none.
func readInventory(ctx context.Context, dyn dynamic.Interface) (inventory, error) {
	kept, err := inventories(dyn).Get(ctx, constants.KubernetesBootstrapManifestsInventoryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		kept, err = inventories(dyn).Create(ctx, inventoryMap(nil), metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("error getting inventory: %w", err)
	}
	data, _, err := unstructured.NestedStringMap(kept.Object, "data")
	keys := inventory{}
	for one := range data {
		keys[one] = true
	}
	return keys, err
}

// createListed creates the objects in order, as Talos does since 1.13: by server-side apply, and with a list of them. An existing object is
// only added to the list; an object in the list is left alone, also if it does not exist any more. As in createAll, an object that is wrong
// in itself is left out, and any other error ends the round: Talos then empties the list.
func createListed(ctx context.Context, dyn dynamic.Interface, mapper meta.RESTMapper, objects []*unstructured.Unstructured) error {
	keys, err := readInventory(ctx, dyn)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range objects {
		wrong, err := createOnce(ctx, dyn, mapper, o, keys)
		if err != nil {
			errs, keys = []error{err}, nil
			break
		}
		if wrong != nil {
			errs = append(errs, wrong)
		}
	}
	if _, err := inventories(dyn).Update(ctx, inventoryMap(keys), metav1.UpdateOptions{}); err != nil {
		errs = append(errs, fmt.Errorf("updating inventory failed: failed to update the inventory: %w", err))
	}
	return errors.Join(errs...)
}

// createOnce creates one object. wrong is an error that is the object's own; err ends the round.
func createOnce(
	ctx context.Context, dyn dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured, keys inventory,
) (wrong, err error) {
	client, name, wrong, err := mapped(dyn, mapper, o)
	if wrong != nil || err != nil {
		return wrong, err
	}
	if keys[key(o)] {
		return nil, nil
	}
	if _, err := client.Get(ctx, o.GetName(), metav1.GetOptions{}); err == nil {
		keys[key(o)] = true
		return nil, nil
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("error checking resource existence: %w", err)
	}
	annotations := o.GetAnnotations()
	if owner, owned := annotations[owningInventory]; owned && owner != constants.KubernetesBootstrapManifestsInventoryName {
		return fmt.Errorf("unexpected foreign inventory annotation on %s ", name), nil
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[owningInventory] = constants.KubernetesBootstrapManifestsInventoryName
	o.SetAnnotations(annotations)
	_, err = client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: constants.KubernetesFieldManagerName})
	switch {
	case err == nil:
		keys[key(o)] = true
		return nil, nil
	case apierrors.IsMethodNotSupported(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return fmt.Errorf("error creating %s: %w", name, err), nil
	}
	return nil, fmt.Errorf("error creating %s: %w", name, err)
}
