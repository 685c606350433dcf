package workload

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// objectCache holds the objects of one kind as the API server last reported them.
type objectCache[T any] struct {
	informer cache.SharedIndexInformer
	changed  chan struct{} // receives after a change
}

// synced tells whether all objects were read once.
func (c objectCache[T]) synced() bool { return c.informer.HasSynced() }

// list returns the objects, which must not be changed.
func (c objectCache[T]) list() []T {
	var out []T
	for _, object := range c.informer.GetStore().List() {
		if one, is := object.(T); is {
			out = append(out, one)
		}
	}
	return out
}

// newCache follows the objects of an informer until ctx ends.
func newCache[T any](ctx context.Context, informer cache.SharedIndexInformer) objectCache[T] {
	c := objectCache[T]{informer: informer, changed: make(chan struct{}, 1)}
	poke := func(any) {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only after the informer has stopped
		AddFunc: poke, UpdateFunc: func(_, now any) { poke(now) }, DeleteFunc: poke,
	})
	go informer.Run(ctx.Done())
	return c
}

// newCustomCache follows the custom resources of a kind, whose CRD must exist.
func newCustomCache(ctx context.Context, c *Cluster, of schema.GroupVersionResource) objectCache[*unstructured.Unstructured] {
	return newCache[*unstructured.Unstructured](ctx, dynamicinformer.NewDynamicSharedInformerFactory(c.Dynamic, 0).ForResource(of).Informer())
}

// decode reads parts of a custom resource, without regard to the case of keys.
func decode(object *unstructured.Unstructured, into any) error {
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// newServiceCache follows all Services.
func newServiceCache(ctx context.Context, c *Cluster) objectCache[*corev1.Service] {
	return newCache[*corev1.Service](ctx, informers.NewSharedInformerFactory(c.Client, 0).Core().V1().Services().Informer())
}

// newEndpointCache follows the EndpointSlices of Services.
func newEndpointCache(ctx context.Context, c *Cluster) objectCache[*discoveryv1.EndpointSlice] {
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = discoveryv1.LabelServiceName }))
	return newCache[*discoveryv1.EndpointSlice](ctx, factory.Discovery().V1().EndpointSlices().Informer())
}
