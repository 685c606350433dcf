package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-platform/slipway/components/readiness/health"
)

// Kind of objects to watch.
type Kind struct {
	schema.GroupVersionResource
	Namespace string // "" means all
	Labels    string // selector; "" means all
}

// Watch publishes all objects of a kind, now and after each change, until ctx ends. An informer would do the same, but it waits for up
// to half a minute before it tries again, and the gate has to see a server that comes back at once.
func Watch[T any](ctx context.Context, k *Kube, kind Kind, convert func(*unstructured.Unstructured) (T, error), publish func(health.Seen[T])) {
	var last health.Seen[T]
	for ctx.Err() == nil {
		back := k.comesBack()
		attempt, end := cancelOn(ctx, back)
		err := session(attempt, k, kind, func(objects map[string]*unstructured.Unstructured) error {
			items := make([]T, 0, len(objects))
			for _, name := range slices.Sorted(maps.Keys(objects)) {
				item, err := convert(objects[name])
				if err != nil {
					return fmt.Errorf("%s %s: %w", kind.Resource, name, err)
				}
				items = append(items, item)
			}
			last = health.Seen[T]{Synced: true, Items: items}
			publish(last)
			return nil
		})
		restarted := attempt.Err() != nil
		end()
		if err == nil || restarted {
			continue
		}
		last.Err = broken(err)
		publish(last)
		select {
		case <-back:
		case <-time.After(pollEvery):
		case <-ctx.Done():
		}
	}
}

// cancelOn is a context that ends with its parent, or when the channel is closed.
func cancelOn(parent context.Context, closed <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// session lists once and watches for as long as that lasts. It returns nil when the watch ended in the normal way.
func session(ctx context.Context, k *Kube, kind Kind, publish func(map[string]*unstructured.Unstructured) error) error {
	resource := k.client.Resource(kind.GroupVersionResource).Namespace(kind.Namespace)

	asking, done := context.WithTimeout(ctx, askTimeout)
	list, err := resource.List(asking, metav1.ListOptions{LabelSelector: kind.Labels})
	done()
	if err != nil {
		return missingKind(kind, err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		objects[key(&list.Items[i])] = &list.Items[i]
	}
	if err := publish(objects); err != nil {
		return err
	}
	seconds := int64(5 * 60)
	events, err := resource.Watch(ctx, metav1.ListOptions{
		LabelSelector: kind.Labels, ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
	})
	if err != nil {
		return missingKind(kind, err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case event.Type == watch.Error:
				return endOfWatch(event)
			case !ok || event.Type == watch.Bookmark:
				continue
			case event.Type == watch.Deleted:
				delete(objects, key(object))
			default:
				objects[key(object)] = object
			}
			if err := publish(objects); err != nil {
				return err
			}
		}
	}
}

// endOfWatch is nil when the watch only has to start anew.
func endOfWatch(event watch.Event) error {
	err := apierrors.FromObject(event.Object)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}

func missingKind(kind Kind, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the API server does not know %s.%s yet", kind.Resource, kind.Group)
	}
	return err
}

func key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}
