package observe

import (
	"sync"
	"sync/atomic"
)

// store holds what was read, and announces changes.
type store[T any] struct {
	mu      sync.Mutex
	seen    T
	changed chan struct{}
}

// newStore returns a store in which nothing was read.
func newStore[T any]() *store[T] { return &store[T]{changed: make(chan struct{}, 1)} }

// Changed returns a channel that receives after one or more changes.
func (s *store[T]) Changed() <-chan struct{} { return s.changed }

// update changes what was read.
func (s *store[T]) update(change func(*T)) {
	s.mu.Lock()
	change(&s.seen)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // a change is already announced
	}
}

// read calls look with what was read. look must not keep it.
func (s *store[T]) read(look func(*T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(&s.seen)
}

// put stores a value in a map, which may be nil.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Calls counts requests.
type Calls struct{ n atomic.Int64 }

// Add counts one request.
func (c *Calls) Add() { c.n.Add(1) }

// Count returns the number of requests so far.
func (c *Calls) Count() int64 { return c.n.Load() }
