package rook

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/workload"
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

// begin keeps the finalizer of an object that is made in a Ceph cluster, and returns the cluster. Without a Ready cluster, and while the
// object is deleted, it does what there is to do, and returns nil. remove removes the object from Ceph; false: something still uses it.
func (o *rookOperator) begin(
	ctx context.Context, kind schema.GroupVersionResource, cr *unstructured.Unstructured, finalizer string, remove func(*ceph.Cluster) bool,
) (*ceph.Cluster, error) {
	c, err := o.readyCluster(ctx, cr.GetNamespace())
	switch {
	case err != nil:
		return nil, err
	case cr.GetDeletionTimestamp() != nil && c != nil && !remove(c):
		return nil, o.setPhase(ctx, kind, cr, "Deleting")
	case cr.GetDeletionTimestamp() != nil:
		return nil, o.removeFinalizer(ctx, kind, cr, finalizer)
	}
	if err := o.addFinalizer(ctx, kind, cr, finalizer); err != nil {
		if apierrors.IsConflict(err) { // the next round reads the newer object
			return nil, nil
		}
		return nil, err
	}
	if c == nil {
		return nil, o.setPhase(ctx, kind, cr, "Progressing")
	}
	return c, nil
}

// reconcilePool makes a pool of a CephBlockPool. One with images is not deleted.
func (o *rookOperator) reconcilePool(ctx context.Context, cr *unstructured.Unstructured) error {
	var body struct {
		Spec struct {
			Name          string // of a pool of Ceph's own, whose name no object can have
			FailureDomain string
			Replicated    struct{ Size int }
		}
	}
	if err := workload.Decode(cr, &body); err != nil {
		return err
	}
	name := cmp.Or(body.Spec.Name, cr.GetName())
	c, err := o.begin(ctx, cephPools, cr, "cephblockpool.ceph.rook.io", func(c *ceph.Cluster) bool {
		images := c.RemovePool(name)
		if images > 0 {
			o.logOnce(fmt.Sprintf("ceph-block-pool-controller: pool %q cannot be deleted because it is not empty or has dependents", name))
		}
		return images == 0
	})
	if c == nil {
		return err
	}
	if body.Spec.FailureDomain != "" && body.Spec.FailureDomain != "host" || body.Spec.Replicated.Size == 0 {
		o.logOnce("CephBlockPool " + cr.GetName() + ": the lab models replicated pools over hosts only")
		return o.setPhase(ctx, cephPools, cr, "Failure")
	}
	c.SetPool(name, body.Spec.Replicated.Size)
	return o.setPhase(ctx, cephPools, cr, "Ready")
}

// reconcileSpace makes a RADOS namespace of a CephBlockPoolRadosNamespace. One with images is not deleted. Not modelled: the ClientProfile
// of the namespace, with which the provider itself would use it.
func (o *rookOperator) reconcileSpace(ctx context.Context, cr *unstructured.Unstructured) error {
	var body struct {
		Spec struct{ BlockPoolName, Name string }
	}
	if err := workload.Decode(cr, &body); err != nil {
		return err
	}
	pool, name := body.Spec.BlockPoolName, cmp.Or(body.Spec.Name, cr.GetName())
	c, err := o.begin(ctx, cephSpaces, cr, "cephblockpoolradosnamespace.ceph.rook.io", func(c *ceph.Cluster) bool {
		return c.RemoveNamespace(pool, name) == 0
	})
	if c == nil {
		return err
	}
	if !c.AddNamespace(pool, name) {
		return o.setPhase(ctx, cephSpaces, cr, "Progressing")
	}
	return o.setPhase(ctx, cephSpaces, cr, "Ready")
}

// reconcileClient makes a Ceph user of a CephClient, and a Secret with its key.
func (o *rookOperator) reconcileClient(ctx context.Context, cr *unstructured.Unstructured) error {
	var body struct {
		Spec struct {
			Caps     map[string]string
			Security struct{ CephX cephxSpec }
		}
	}
	if err := workload.Decode(cr, &body); err != nil {
		return err
	}
	c, err := o.begin(ctx, cephClients, cr, "cephclient.ceph.rook.io", func(c *ceph.Cluster) bool {
		c.RemoveUser("client." + cr.GetName())
		return true
	})
	if c == nil {
		return err
	}
	name := "rook-ceph-client-" + cr.GetName()
	key := []byte(c.SetUser("client."+cr.GetName(), body.Spec.Caps, o.keyType(body.Spec.Security.CephX)))
	if err := o.applySecret(ctx, cr, name, map[string][]byte{cr.GetName(): key, "userID": []byte(cr.GetName()), "userKey": key}); err != nil {
		return err
	}
	return o.setStatus(ctx, cephClients, cr, func(s map[string]any) {
		s["phase"], s["observedGeneration"] = "Ready", cr.GetGeneration()
		s["info"] = map[string]any{"secretName": name}
	})
}
