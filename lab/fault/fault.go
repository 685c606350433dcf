// Package fault holds what is broken in a running lab. The command `lab fault` and the tests switch faults on and off
// while the lab runs. A simulator asks with Active where a fault has its effect; each simulator does so in its faults.go.
package fault

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Fault is a fault that is on.
type Fault struct {
	Kind   Kind      `json:"kind"`
	Target string    `json:"target,omitempty"` // "*" stands for every target
	Detail string    `json:"detail,omitempty"` // usually the text of the simulator's error; see Kinds
	Until  time.Time `json:"until,omitzero"`   // zero: until switched off
	since  time.Time // when it was switched on
}

// Age is how long the fault has been on.
func (f Fault) Age() time.Duration { return time.Since(f.since) }

// Set holds the faults of one lab. Its zero value is ready for use and has no faults. It is safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	faults  []Fault
	changes wait.Changes
}

// On switches f on. It replaces a fault of the same kind and target. A fault with Until ends by itself.
func (s *Set) On(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(f.Kind, f.Target)
	f.since = time.Now()
	s.faults = append(s.faults, f)
	s.changes.Notify()
	if !f.Until.IsZero() {
		time.AfterFunc(time.Until(f.Until), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.expire()
			s.changes.Notify()
		})
	}
	return nil
}

// Off switches a fault off; it reports whether it was on.
func (s *Set) Off(kind Kind, target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.faults)
	s.remove(kind, target)
	s.changes.Notify()
	return len(s.faults) < n
}

// Clear switches every fault off.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	s.changes.Notify()
}

// Active returns the fault of this kind whose target is one of names, or part of a name if the kind says so.
// A nil set has no faults.
func (s *Set) Active(kind Kind, names ...string) (Fault, bool) {
	if s == nil {
		return Fault{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	for _, f := range s.faults {
		if f.Kind == kind && f.matches(names) {
			return f, true
		}
	}
	return Fault{}, false
}

// IsActive tells whether a fault of this kind is active; see Active.
func (s *Set) IsActive(kind Kind, names ...string) bool {
	_, on := s.Active(kind, names...)
	return on
}

// List returns the faults that are on, in a stable order.
func (s *Set) List() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	out := slices.Clone(s.faults)
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Target, b.Target))
	})
	return out
}

// Changed returns a channel that is closed at the next change. Take it before reading the faults, then wait on it. The
// channel of a nil set is nil, which blocks forever.
func (s *Set) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changes.Changed()
}

// Wait waits until done is true. It calls done now and after each change of the set. It returns the context's error if
// that ends first.
func (s *Set) Wait(ctx context.Context, done func() bool) error {
	if s == nil {
		s = &Set{}
	}
	if !s.changes.Until(ctx, done) {
		return ctx.Err()
	}
	return nil
}

func (s *Set) remove(kind Kind, target string) {
	s.faults = slices.DeleteFunc(s.faults, func(f Fault) bool { return f.Kind == kind && f.Target == target })
}

func (s *Set) expire() {
	now := time.Now()
	s.faults = slices.DeleteFunc(s.faults, func(f Fault) bool { return !f.Until.IsZero() && !now.Before(f.Until) })
}
