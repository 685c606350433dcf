package observe

import (
	"context"
	"sync"

	"github.com/slipway-platform/slipway/internal/health"
)

// observer is what all observers have in common: S is the spec with the expectations, C holds what was read.
type observer[S, C any] struct {
	*store[C]
	Answerer

	spec  *S
	judge func(*S, *C) []health.Result
}

// newObserver returns an observer that has read nothing yet.
func newObserver[S, C any](spec *S, kube *Kube, judge func(*S, *C) []health.Result) *observer[S, C] {
	return &observer[S, C]{store: newStore[C](), Answerer: Answerer{kube: kube}, spec: spec, judge: judge}
}

// Evaluate judges what was read.
func (o *observer[S, C]) Evaluate() (results []health.Result) {
	o.read(func(seen *C) { results = o.judge(o.spec, seen) })
	return results
}

// watches run until their context ends.
type watches[C any] struct {
	sync.WaitGroup

	ctx   context.Context
	kube  *Kube
	store *store[C]
}

// watches begins the watch of the API server that all observers but the gate's have: a watch of objects alone does not notice that the
// server went away.
func (o *observer[S, C]) watches(ctx context.Context) *watches[C] {
	w := &watches[C]{ctx: ctx, kube: o.kube, store: o.store}
	w.Go(func() { o.kube.watchReadiness(ctx, nil) })
	return w
}

// keep watches a kind and stores its objects.
func keep[C, T any](w *watches[C], of kind, convert conversion[T], place func(*C) *health.Seen[T]) {
	follow(w, of, convert, func(c *C, seen health.Seen[T]) { *place(c) = seen })
}

// follow watches a kind and gives its objects to a function that stores them.
func follow[C, T any](w *watches[C], of kind, convert conversion[T], store func(*C, health.Seen[T])) {
	w.Go(func() {
		watchAll(w.ctx, w.kube, of, convert, func(seen health.Seen[T]) { w.store.update(func(c *C) { store(c, seen) }) })
	})
}
