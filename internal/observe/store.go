package observe

import (
	"sync"
	"sync/atomic"
)

// Store holds what has been seen, and says when that changes.
type Store[T any] struct {
	mu      sync.Mutex
	seen    T
	changed chan struct{}
}

// NewStore returns a store that has seen nothing.
func NewStore[T any]() *Store[T] { return &Store[T]{changed: make(chan struct{}, 1)} }

// Changed receives after one or more changes.
func (s *Store[T]) Changed() <-chan struct{} { return s.changed }

// Update changes what has been seen.
func (s *Store[T]) Update(change func(*T)) {
	s.mu.Lock()
	change(&s.seen)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // a change is already announced
	}
}

// Read looks at what has been seen; it must not be kept.
func (s *Store[T]) Read(look func(*T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(&s.seen)
}

// Calls counts requests.
type Calls struct{ n atomic.Int64 }

// Add counts one request.
func (c *Calls) Add() { c.n.Add(1) }

// Count is the number of requests so far.
func (c *Calls) Count() int64 { return c.n.Load() }
