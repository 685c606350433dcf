package rook

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The CRDs of the operator of the CSI drivers.
var (
	csiDrivers     = schema.GroupVersionResource{Group: "csi.ceph.io", Version: "v1", Resource: "drivers"}
	csiSettings    = schema.GroupVersionResource{Group: "csi.ceph.io", Version: "v1", Resource: "operatorconfigs"}
	csiConnections = schema.GroupVersionResource{Group: "csi.ceph.io", Version: "v1", Resource: "cephconnections"}
	csiProfiles    = schema.GroupVersionResource{Group: "csi.ceph.io", Version: "v1", Resource: "clientprofiles"}
)

// describeToCSI tells the operator of the CSI drivers where the monitors of a namespace's cluster are. Rook itself runs no driver.
func (o *rookOperator) describeToCSI(ctx context.Context, namespace string, monitors []string) error {
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "csi.ceph.io/v1", "kind": kind,
			"metadata": map[string]any{"name": namespace, "namespace": o.Pod.Namespace}, "spec": spec}}
	}
	addresses := make([]any, len(monitors))
	for i, address := range monitors {
		addresses[i] = address
	}
	if err := o.apply(ctx, object("CephConnection", map[string]any{"monitors": addresses})); err != nil {
		return err
	}
	secret := map[string]any{"controllerPublishSecret": map[string]any{"name": "rook-csi-rbd-provisioner", "namespace": namespace}}
	return o.apply(ctx, object("ClientProfile", map[string]any{
		"cephConnectionRef": map[string]any{"name": namespace}, "rbd": map[string]any{"cephCsiSecrets": secret},
	}))
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
