package observe

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	*store[storage.Cluster]
	Answerer

	spec *storage.Spec
}

// NewStorage returns a Storage that has read nothing yet.
func NewStorage(spec *storage.Spec, kube *Kube) *Storage {
	s := &Storage{store: newStore[storage.Cluster](), Answerer: Answerer{kube: kube}, spec: spec}
	s.update(func(seen *storage.Cluster) { seen.Volumes = map[string]storage.Volume{} })
	return s
}

// Evaluate judges what was read.
func (s *Storage) Evaluate() []health.Result {
	return s.evaluate(func(seen *storage.Cluster) []health.Result { return storage.Evaluate(s.spec, seen) })
}

// Watch reads and tries volumes until ctx ends, and returns when everything it started has ended. What it has created is deleted by then.
func (s *Storage) Watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		watchAll(ctx, s.kube, kind{GroupVersionResource: csiNodesKind}, plain(csiNode),
			into(s.store, func(seen *storage.Cluster) *health.Seen[storage.Node] { return &seen.Nodes }))
	})
	running.Go(func() {
		watchAll(ctx, s.kube, kind{GroupVersionResource: storageClassesKind}, plain(storageClass),
			into(s.store, func(seen *storage.Cluster) *health.Seen[storage.Class] { return &seen.Classes }))
	})
	if c := s.spec.Connection; c != nil {
		running.Go(func() {
			watchAll(ctx, s.kube, externalSecretsKind("externalsecrets", c.Namespace, c.ExternalSecret), plain(externalSecretsObject),
				into(s.store, func(seen *storage.Cluster) *health.Seen[externalsecrets.Object] { return &seen.Connection.Secrets }))
		})
		running.Go(func() {
			watchAll(ctx, s.kube, kind{GroupVersionResource: eventsKind, Namespace: c.Namespace}, plain(warning),
				into(s.store, func(seen *storage.Cluster) *health.Seen[externalsecrets.Warning] { return &seen.Connection.Warnings }))
		})
	}
	running.Go(func() { s.kube.watchReadiness(ctx, nil) }) // a watch alone does not notice that the server went away
	for _, class := range s.spec.Classes {
		running.Go(func() { s.tryVolume(ctx, class) })
	}
}

// csiNode reads a CSINode.
func csiNode(object *unstructured.Unstructured) (storage.Node, error) {
	node, err := typed[storagev1.CSINode](object)
	seen := storage.Node{Name: object.GetName()}
	for _, driver := range node.Spec.Drivers {
		seen.Drivers = append(seen.Drivers, driver.Name)
	}
	slices.Sort(seen.Drivers)
	return seen, err
}

// storageClass reads a StorageClass.
func storageClass(object *unstructured.Unstructured) (storage.Class, error) {
	class, err := typed[storagev1.StorageClass](object)
	retain := class.ReclaimPolicy != nil && *class.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	return storage.Class{Name: object.GetName(), Driver: class.Provisioner, Retain: retain}, err
}
