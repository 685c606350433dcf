package workload

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// ObjectCache holds the objects of one kind as the API server last reported them.
type ObjectCache[T any] struct {
	informer cache.SharedIndexInformer
	Changed  chan struct{} // receives after a change
}

// Synced tells whether all objects were read once.
func (c ObjectCache[T]) Synced() bool { return c.informer.HasSynced() }

// List returns the objects, which must not be changed.
func (c ObjectCache[T]) List() []T {
	var out []T
	for _, object := range c.informer.GetStore().List() {
		if one, is := object.(T); is {
			out = append(out, one)
		}
	}
	return out
}

// NewCache follows the objects of an informer until ctx ends.
func NewCache[T any](ctx context.Context, informer cache.SharedIndexInformer) ObjectCache[T] {
	c := ObjectCache[T]{informer: informer, Changed: make(chan struct{}, 1)}
	poke := func(any) { Poke(c.Changed) }
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only after the informer has stopped
		AddFunc: poke, UpdateFunc: func(_, now any) { poke(now) }, DeleteFunc: poke,
	})
	go informer.Run(ctx.Done())
	return c
}

// NewCustomCache follows the custom resources of a kind, whose CRD must exist.
func NewCustomCache(ctx context.Context, c *Cluster, of schema.GroupVersionResource) ObjectCache[*unstructured.Unstructured] {
	return NewCache[*unstructured.Unstructured](ctx, dynamicinformer.NewDynamicSharedInformerFactory(c.Dynamic, 0).ForResource(of).Informer())
}

// Decode reads parts of a custom resource, without regard to the case of keys.
func Decode(object *unstructured.Unstructured, into any) error {
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
