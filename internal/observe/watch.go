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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-platform/slipway/internal/health"
)

// kind is a kind of objects to watch.
type kind struct {
	schema.GroupVersionResource
	Namespace string // "" means all
	Labels    string // selector; "" means all
	Name      string // of the one object; "" means all
}

func (k kind) options() metav1.ListOptions {
	options := metav1.ListOptions{LabelSelector: k.Labels}
	if k.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", k.Name).String()
	}
	return options
}

// unknownKindEvery is the time between two requests for a kind that is not served: its chart or operator takes seconds at least.
const unknownKindEvery = time.Second

// conversion reads an object. before is the result of the last time, nil at first.
type conversion[T any] func(before *T, object *unstructured.Unstructured) (T, error)

// plain makes a conversion of a function that does not need the last result.
func plain[T any](convert func(*unstructured.Unstructured) (T, error)) conversion[T] {
	return func(_ *T, object *unstructured.Unstructured) (T, error) { return convert(object) }
}

// watchAll publishes all objects of a kind, now and after each change, until ctx ends. An informer does the same, but waits up to half a
// minute before it tries again, and the gate must see at once that a server answers.
func watchAll[T any](ctx context.Context, k *Kube, of kind, convert conversion[T], publish func(health.Seen[T])) {
	var last health.Seen[T]
	items := map[string]T{}
	for failures := 0; ctx.Err() == nil; {
		back := k.comesBack()
		attempt, end := cancelOn(ctx, back)
		err := session(attempt, k, of, func(changed []*unstructured.Unstructured, gone []string, all bool) error {
			now := items
			if all {
				now = map[string]T{}
			}
			for _, object := range changed {
				var before *T
				if item, known := items[key(object)]; known {
					before = &item
				}
				item, err := convert(before, object)
				if err != nil {
					return fmt.Errorf("%s %s: %w", of.Resource, key(object), err)
				}
				now[key(object)] = item
			}
			for _, name := range gone {
				delete(now, name)
			}
			items = now
			last = health.Seen[T]{Synced: true, Items: make([]T, 0, len(items))}
			for _, name := range slices.Sorted(maps.Keys(items)) {
				last.Items = append(last.Items, items[name])
			}
			publish(last)
			return nil
		})
		restarted := attempt.Err() != nil
		end()
		if err == nil || restarted {
			continue
		}
		failure := broken(err)
		if failures++; failures == 1 && temporary(failure) {
			continue // as in asked
		}
		last.Err = failure
		publish(last)
		wait := pollEvery
		if last.Err.Unknown {
			wait = unknownKindEvery
		}
		select {
		case <-back:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// cancelOn returns a context that ends with its parent, or when the channel is closed.
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

// session lists once, publishes the list, and then publishes changes until the watch ends. It returns nil if the watch ended normally.
func session(
	ctx context.Context, k *Kube, of kind, publish func(changed []*unstructured.Unstructured, gone []string, all bool) error,
) error {
	resource := k.Objects.Resource(of.GroupVersionResource).Namespace(of.Namespace)

	asking, done := context.WithTimeout(ctx, askTimeout)
	list, err := resource.List(asking, of.options())
	done()
	if err != nil {
		return missingKind(of, err)
	}
	var listed []*unstructured.Unstructured
	for i := range list.Items {
		listed = append(listed, &list.Items[i])
	}
	if err := publish(listed, nil, true); err != nil {
		return err
	}
	options := of.options()
	options.ResourceVersion, options.TimeoutSeconds, options.AllowWatchBookmarks = list.GetResourceVersion(), new(int64(5*60)), true
	events, err := resource.Watch(ctx, options)
	if err != nil {
		return missingKind(of, err)
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
			var changed []*unstructured.Unstructured
			var gone []string
			switch {
			case event.Type == watch.Error:
				return endOfWatch(event)
			case !ok || event.Type == watch.Bookmark:
				continue
			case event.Type == watch.Deleted:
				gone = append(gone, key(object))
			default:
				changed = append(changed, object)
			}
			if err := publish(changed, gone, false); err != nil {
				return err
			}
		}
	}
}

// endOfWatch returns nil if the watch only has to be started again.
func endOfWatch(event watch.Event) error {
	err := apierrors.FromObject(event.Object)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}

func missingKind(of kind, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w %s.%s yet", errUnknownKind, of.Resource, of.Group)
	}
	return err
}

func key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}
