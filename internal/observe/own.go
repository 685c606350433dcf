package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/own"
)

// Own reads what the checks of the stack file judge. It changes nothing.
type Own struct {
	*observer[own.Spec, own.Seen]
}

// NewOwn returns an Own that has read nothing yet.
func NewOwn(spec *own.Spec, kube *Kube) *Own {
	return &Own{newObserver(spec, kube, func(spec *own.Spec, seen *own.Seen) []health.Result {
		return own.Evaluate(spec.Checks, *seen, own.AbsentFails)
	})}
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (o *Own) Watch(ctx context.Context) {
	w := o.watches(ctx)
	defer w.Wait()
	watchOwn(w, o.spec.Checks, func(seen *own.Seen) *own.Seen { return seen })
}

// watchOwn watches the objects of checks of the stack file.
func watchOwn[C any](w *watches[C], checks []cluster.Check, place func(*C) *own.Seen) {
	for _, check := range checks {
		publish := func(seen health.Seen[cluster.CheckedObject]) {
			w.store.update(func(c *C) { put((*map[string]health.Seen[cluster.CheckedObject])(place(c)), check.Name, seen) })
		}
		w.Go(func() { watchOwnCheck(w.ctx, w.kube, check, publish) })
	}
}

func watchOwnCheck(ctx context.Context, k *Kube, check cluster.Check, publish func(health.Seen[cluster.CheckedObject])) {
	expression, err := check.Compile()
	if err != nil {
		publish(health.Seen[cluster.CheckedObject]{Err: &health.Broken{Reason: err.Error(), Hopeless: true}})
		return
	}
	of, found := awaitKind(ctx, k, check.Objects, func(why *health.Broken) { publish(health.Seen[cluster.CheckedObject]{Err: why}) })
	if !found {
		return
	}
	watchAll(ctx, k, of, plain(func(object *unstructured.Unstructured) (cluster.CheckedObject, error) {
		return cluster.Checked(ctx, expression, object), nil
	}), publish)
}

// awaitKind returns the kind of declared objects, once the API server serves it. Until then it publishes why they cannot be read.
func awaitKind(ctx context.Context, k *Kube, objects cluster.CheckedObjects, publish func(*health.Broken)) (of kind, found bool) {
	for first := true; ctx.Err() == nil; first = false {
		of, err := k.findKind(ctx, objects)
		switch {
		case err == nil:
			return of, true
		case first && temporary(err):
			continue // as in asked
		}
		if ctx.Err() == nil {
			publish(err)
		}
		wait := pollEvery
		if err.Unknown {
			wait = unknownKindEvery
		}
		pause(ctx, wait)
	}
	return kind{}, false
}

func (k *Kube) findKind(ctx context.Context, objects cluster.CheckedObjects) (kind, *health.Broken) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	served, err := k.Find(ctx, objects.APIVersion, objects.Kind)
	switch {
	case apierrors.IsNotFound(err):
		return kind{}, broken(fmt.Errorf("%w %s %s yet", errUnknownKind, objects.APIVersion, objects.Kind))
	case err != nil:
		return kind{}, broken(err)
	case objects.Namespace != "" && !served.Namespaced:
		return kind{}, &health.Broken{Reason: objects.Kind + " has no namespaces; remove the namespace of the check", Hopeless: true}
	}
	return kind{GroupVersionResource: served.Resource, Namespace: objects.Namespace, Labels: objects.Selector, Name: objects.Name}, nil
}
