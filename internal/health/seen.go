package health

import "slices"

// Seen is a watched collection of objects. The zero value has not been read yet.
type Seen[T any] struct {
	Synced bool    // the collection has been read at least once
	Err    *Broken // why it cannot be read now; Items are then the last known
	Items  []T
}

// Unread returns the result for a subject whose objects cannot be judged; ok is false if they can.
func (s Seen[T]) Unread(subject, what string) (result Result, ok bool) {
	switch {
	case s.Err != nil:
		return Unreadable(subject, what, s.Err), true
	case !s.Synced:
		return NotSeen(subject, what), true
	}
	return Result{}, false
}

// Find returns the first object that is meant; ok is false if there is none.
func (s Seen[T]) Find(is func(T) bool) (object T, ok bool) {
	if i := slices.IndexFunc(s.Items, is); i >= 0 {
		return s.Items[i], true
	}
	return object, false
}

// Broken is why something cannot be read.
type Broken struct {
	Reason   string
	Hopeless bool // credentials or certificates are refused: waiting will not change it
	Unknown  bool // the server does not serve what was asked for
	Gone     bool // no server answered
}
