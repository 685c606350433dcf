// Package fault holds what is broken in a running lab. The simulators ask it at the moment a fault would bite; the
// command `lab fault` and the tests switch faults on and off while the lab runs.
package fault

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is one thing that is broken.
type Fault struct {
	Kind   Kind      `json:"kind"`
	Target string    `json:"target,omitempty"` // "*" stands for every target
	Detail string    `json:"detail,omitempty"` // free text that the simulator words its error with
	Until  time.Time `json:"until,omitzero"`   // zero: until switched off
}

// Set is the faults of one lab. Its zero value holds none and is ready for use; it is safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	faults  []Fault
	changed chan struct{}
}

// On switches f on, replacing a fault of the same kind and target. A fault with Until set ends by itself.
func (s *Set) On(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(f.Kind, f.Target)
	s.faults = append(s.faults, f)
	s.notify()
	if !f.Until.IsZero() {
		time.AfterFunc(time.Until(f.Until), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.expire()
			s.notify()
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
	s.notify()
	return len(s.faults) < n
}

// Clear switches every fault off.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	s.notify()
}

// Active returns the fault of this kind that bites target, if one does.
func (s *Set) Active(kind Kind, target string) (Fault, bool) {
	return s.Find(kind, func(t string) bool { return t == target })
}

// ActiveWithin returns the fault of this kind whose target is a part of whole: of a request's path, of an image's
// reference.
func (s *Set) ActiveWithin(kind Kind, whole string) (Fault, bool) {
	return s.Find(kind, func(t string) bool { return strings.Contains(whole, t) })
}

// Find returns the fault of this kind whose target matches. The target * and no target match always.
func (s *Set) Find(kind Kind, match func(target string) bool) (Fault, bool) {
	if s == nil {
		return Fault{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	for _, f := range s.faults {
		if f.Kind == kind && (f.Target == "*" || f.Target == "" || match(f.Target)) {
			return f, true
		}
	}
	return Fault{}, false
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

// Changed returns a channel that is closed at the next change. Take it before reading the faults, then wait on it.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *Set) notify() {
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = nil
}

func (s *Set) remove(kind Kind, target string) {
	s.faults = slices.DeleteFunc(s.faults, func(f Fault) bool { return f.Kind == kind && f.Target == target })
}

func (s *Set) expire() {
	now := time.Now()
	s.faults = slices.DeleteFunc(s.faults, func(f Fault) bool { return !f.Until.IsZero() && !now.Before(f.Until) })
}
