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

// Kind of objects to watch.
type Kind struct {
	schema.GroupVersionResource
	Namespace string // "" means all
	Labels    string // selector; "" means all
	Name      string // of the one object; "" means all
}

func (k Kind) options() metav1.ListOptions {
	options := metav1.ListOptions{LabelSelector: k.Labels}
	if k.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", k.Name).String()
	}
	return options
}

// A kind that is not served may come with a chart or an operator, which takes longer than a server that is away.
const unknownKindEvery = time.Second

// Convert reads an object. before is what it was read as the last time, nil at first.
type Convert[T any] func(before *T, object *unstructured.Unstructured) (T, error)

// plain is a conversion that does not look back.
func plain[T any](convert func(*unstructured.Unstructured) (T, error)) Convert[T] {
	return func(_ *T, object *unstructured.Unstructured) (T, error) { return convert(object) }
}

// Watch publishes all objects of a kind, now and after each change, until ctx ends. An informer would do the same, but it waits for up
// to half a minute before it tries again, and the gate has to see a server that comes back at once.
func Watch[T any](ctx context.Context, k *Kube, kind Kind, convert Convert[T], publish func(health.Seen[T])) {
	var last health.Seen[T]
	items := map[string]T{}
	for ctx.Err() == nil {
		back := k.comesBack()
		attempt, end := cancelOn(ctx, back)
		err := session(attempt, k, kind, func(changed []*unstructured.Unstructured, gone []string, all bool) error {
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
					return fmt.Errorf("%s %s: %w", kind.Resource, key(object), err)
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
		last.Err = broken(err)
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

// session lists once and watches for as long as that lasts; it publishes the list as all there is, and then what changes. It returns
// nil when the watch ended in the normal way.
func session(ctx context.Context, k *Kube, kind Kind, publish func(changed []*unstructured.Unstructured, gone []string, all bool) error) error {
	resource := k.client.Resource(kind.GroupVersionResource).Namespace(kind.Namespace)

	asking, done := context.WithTimeout(ctx, askTimeout)
	list, err := resource.List(asking, kind.options())
	done()
	if err != nil {
		return missingKind(kind, err)
	}
	var listed []*unstructured.Unstructured
	for i := range list.Items {
		listed = append(listed, &list.Items[i])
	}
	if err := publish(listed, nil, true); err != nil {
		return err
	}
	seconds := int64(5 * 60)
	options := kind.options()
	options.ResourceVersion, options.TimeoutSeconds, options.AllowWatchBookmarks = list.GetResourceVersion(), &seconds, true
	events, err := resource.Watch(ctx, options)
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
		return fmt.Errorf("%w %s.%s yet", errUnknownKind, kind.Resource, kind.Group)
	}
	return err
}

func key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}
