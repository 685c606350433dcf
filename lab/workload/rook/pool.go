package rook

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/lab/workload"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// readyCluster returns the Ceph cluster of a namespace once its CephCluster is Ready; nil before.
func (o *rookOperator) readyCluster(ctx context.Context, namespace string) (*ceph.Cluster, error) {
	for _, cr := range o.clusters.List() {
		if phase, _, _ := unstructured.NestedString(cr.Object, "status", "phase"); cr.GetNamespace() != namespace || phase != "Ready" {
			continue
		}
		secret, err := o.Cluster.Client.CoreV1().Secrets(namespace).Get(ctx, rookMonSecret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if c := o.rook.Ceph.Find(string(secret.Data["fsid"])); c != nil && c.Quorum() != nil {
			return c, nil
		}
	}
	return nil, nil
}

// setPhase writes the phase of a pool or a client.
func (o *rookOperator) setPhase(ctx context.Context, kind schema.GroupVersionResource, cr *unstructured.Unstructured, phase string) error {
	return o.setStatus(ctx, kind, cr, func(s map[string]any) {
		s["phase"] = phase
		if phase == "Ready" {
			s["observedGeneration"] = cr.GetGeneration()
		}
	})
}

// reconcilePool makes a pool of a CephBlockPool. One with images is not deleted.
func (o *rookOperator) reconcilePool(ctx context.Context, cr *unstructured.Unstructured) error {
	const finalizer = "cephblockpool.ceph.rook.io"
	var body struct {
		Spec struct {
			FailureDomain string
			Replicated    struct{ Size int }
		}
	}
	if err := workload.Decode(cr, &body); err != nil {
		return err
	}
	c, err := o.readyCluster(ctx, cr.GetNamespace())
	if err != nil {
		return err
	}
	if cr.GetDeletionTimestamp() != nil {
		if c != nil {
			if images := c.RemovePool(cr.GetName()); images > 0 {
				o.logOnce(fmt.Sprintf("ceph-block-pool-controller: pool %q cannot be deleted because it is not empty or has dependents", cr.GetName()))
				return o.setPhase(ctx, cephPools, cr, "Deleting")
			}
		}
		return o.removeFinalizer(ctx, cephPools, cr, finalizer)
	}
	if err := o.addFinalizer(ctx, cephPools, cr, finalizer); err != nil {
		return ignoreConflict(err)
	}
	if c == nil {
		return o.setPhase(ctx, cephPools, cr, "Progressing")
	}
	if body.Spec.FailureDomain != "" && body.Spec.FailureDomain != "host" || body.Spec.Replicated.Size == 0 {
		o.logOnce("CephBlockPool " + cr.GetName() + ": the lab models replicated pools over hosts only")
		return o.setPhase(ctx, cephPools, cr, "Failure")
	}
	c.SetPool(cr.GetName(), body.Spec.Replicated.Size)
	return o.setPhase(ctx, cephPools, cr, "Ready")
}

// reconcileClient makes a Ceph user of a CephClient, and a Secret with its key.
func (o *rookOperator) reconcileClient(ctx context.Context, cr *unstructured.Unstructured) error {
	const finalizer = "cephclient.ceph.rook.io"
	var body struct {
		Spec struct{ Caps map[string]string }
	}
	if err := workload.Decode(cr, &body); err != nil {
		return err
	}
	c, err := o.readyCluster(ctx, cr.GetNamespace())
	if err != nil {
		return err
	}
	if cr.GetDeletionTimestamp() != nil {
		if c != nil {
			c.RemoveUser("client." + cr.GetName())
		}
		return o.removeFinalizer(ctx, cephClients, cr, finalizer)
	}
	if err := o.addFinalizer(ctx, cephClients, cr, finalizer); err != nil {
		return ignoreConflict(err)
	}
	if c == nil {
		return o.setPhase(ctx, cephClients, cr, "Progressing")
	}
	name := "rook-ceph-client-" + cr.GetName()
	key := []byte(c.SetUser("client."+cr.GetName(), body.Spec.Caps))
	if err := o.apply(ctx, secretKind, &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: owned(cr.GetNamespace(), name, ownerOf(cr), nil),
		Type: rookSecretType,
		Data: map[string][]byte{cr.GetName(): key, "userID": []byte(cr.GetName()), "userKey": key},
	}); err != nil {
		return err
	}
	return o.setStatus(ctx, cephClients, cr, func(s map[string]any) {
		s["phase"], s["observedGeneration"] = "Ready", cr.GetGeneration()
		s["info"] = map[string]any{"secretName": name}
	})
}

// ignoreConflict leaves a conflict to the next round, which reads the newer object.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
