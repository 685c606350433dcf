package live

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Resources of Rook.
var (
	cephClusters   = schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephclusters"}
	cephBlockPools = schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephblockpools"}
)

// Ceph implements turn.Cluster. Rook writes Ceph's health into its CephCluster once a minute, and keeps a Deployment of each OSD until
// somebody purges it.
func (c *Cluster) Ceph(ctx context.Context) (turn.Ceph, error) {
	var seen turn.Ceph
	osds, err := List[appsv1.Deployment](ctx, c, kubeapi.Deployments, metav1.ListOptions{LabelSelector: "app=rook-ceph-osd"})
	if err != nil {
		return turn.Ceph{}, err
	}
	for _, osd := range osds {
		if osd.Namespace == cluster.RookNamespace {
			seen.OSDs = append(seen.OSDs, turn.OSD{
				ID: osd.Labels["ceph_daemon_id"], Host: osd.Labels["topology-location-host"], Runs: osd.Status.ReadyReplicas > 0,
			})
		}
	}
	err = c.eachOfRook(ctx, cephClusters, func(object map[string]any) {
		details, _, _ := unstructured.NestedMap(object, "status", "ceph", "details")
		for _, code := range slices.Sorted(maps.Keys(details)) {
			if message, _, _ := unstructured.NestedString(details, code, "message"); message != "" && isOfData(code) {
				seen.Lacks = append(seen.Lacks, message)
			}
		}
	})
	if err != nil {
		return turn.Ceph{}, err
	}
	err = c.eachOfRook(ctx, cephBlockPools, func(object map[string]any) {
		copies, _, _ := unstructured.NestedInt64(object, "spec", "replicated", "size")
		seen.Copies = max(seen.Copies, int(copies))
	})
	return seen, err
}

// isOfData reports whether a health check of Ceph is about copies that are missing, for which Rook keeps OSDs. Others, such as of scrubs
// that are late or of disks that are nearly full, do not hold up a drain. Rook writes error if no monitor answers.
func isOfData(code string) bool {
	return slices.Contains([]string{"error", "PG_AVAILABILITY", "PG_DEGRADED", "OSD_DOWN", "OSD_HOST_DOWN", "OBJECT_UNFOUND"}, code)
}

// eachOfRook calls do with each object of a resource of Rook.
func (c *Cluster) eachOfRook(ctx context.Context, of schema.GroupVersionResource, do func(object map[string]any)) error {
	objects, err := c.Objects(ctx, of)
	for _, object := range objects {
		if object.GetNamespace() == cluster.RookNamespace {
			do(object.Object)
		}
	}
	return err
}
