package observe

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
	"github.com/slipway-platform/slipway/internal/health/storage"
)

var (
	csiNodesKind       = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	storageClassesKind = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// Storage reads what the checks of package storage judge. It creates a Job with a volume for each StorageClass, and removes both again.
type Storage struct {
	*observer[storage.Spec, storage.Cluster]
}

// NewStorage returns a Storage that has read nothing yet.
func NewStorage(spec *storage.Spec, kube *Kube) *Storage {
	return &Storage{newObserver(spec, kube, storage.Evaluate)}
}

// Watch reads and tries volumes until ctx ends, and returns when everything it started has ended. What it has created is deleted by then.
func (s *Storage) Watch(ctx context.Context) {
	w := s.watches(ctx)
	defer w.Wait()
	keep(w, kind{GroupVersionResource: csiNodesKind}, plain(csiNode),
		func(seen *storage.Cluster) *health.Seen[storage.Node] { return &seen.Nodes })
	keep(w, kind{GroupVersionResource: storageClassesKind}, plain(storageClass),
		func(seen *storage.Cluster) *health.Seen[storage.Class] { return &seen.Classes })
	if c := s.spec.Connection; c != nil {
		keep(w, externalSecretsKind("externalsecrets", c.Namespace, c.ExternalSecret), plain(externalSecretsObject),
			func(seen *storage.Cluster) *health.Seen[externalsecrets.Object] { return &seen.Connection.Secrets })
		keep(w, kind{GroupVersionResource: kubeapi.Events, Namespace: c.Namespace}, plain(warning),
			func(seen *storage.Cluster) *health.Seen[externalsecrets.Warning] { return &seen.Connection.Warnings })
	}
	for _, class := range s.spec.Classes {
		w.Go(func() { s.tryVolume(ctx, class) })
	}
}

// csiNode reads a CSINode.
func csiNode(object *unstructured.Unstructured) (storage.Node, error) {
	node, err := kubeapi.Typed[storagev1.CSINode](object)
	seen := storage.Node{Name: object.GetName()}
	for _, driver := range node.Spec.Drivers {
		seen.Drivers = append(seen.Drivers, driver.Name)
	}
	slices.Sort(seen.Drivers)
	return seen, err
}

// storageClass reads a StorageClass.
func storageClass(object *unstructured.Unstructured) (storage.Class, error) {
	class, err := kubeapi.Typed[storagev1.StorageClass](object)
	retain := class.ReclaimPolicy != nil && *class.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	return storage.Class{Name: object.GetName(), Driver: class.Provisioner, Retain: retain}, err
}
