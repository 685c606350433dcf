// Package fault holds what is broken in a running lab. The simulators ask it at the moment a fault would bite; the
// command `lab fault` and the tests switch faults on and off while the lab runs.
package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind names a fault as `lab fault` spells it.
type Kind string

// The faults that the lab knows.
const (
	ProxmoxTaskFails Kind = "proxmox-task-fails" // target: task type (qmcreate, qmstart, download …); Detail: exit status
	ProxmoxTaskSlow  Kind = "proxmox-task-slow"  // target: task type; takes latency.SlowFactor times as long
	VMNeverBoots     Kind = "vm-never-boots"     // target: VM name; it is "running" for Proxmox, and nothing answers
	KubeletDown      Kind = "kubelet-down"       // target: node name; the Talos service fails, the Node goes NotReady
	CiliumAgentCrash Kind = "cilium-agent-crash" // target: node name; the agent's container is in CrashLoopBackOff
	GitRefused       Kind = "git-refused"        // target: none; every Git request is answered 401
	APIServerGone    Kind = "api-server-gone"    // target: cluster name; nothing answers on port 6443
)

// Kinds maps every kind to what its target is ("" where it takes none), for help texts and validation.
var Kinds = map[Kind]string{
	ProxmoxTaskFails: "task type",
	ProxmoxTaskSlow:  "task type",
	VMNeverBoots:     "VM name",
	KubeletDown:      "node name",
	CiliumAgentCrash: "node name",
	GitRefused:       "",
	APIServerGone:    "cluster name",
}

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
	target, known := Kinds[f.Kind]
	switch {
	case !known:
		return fmt.Errorf("fault %q: unknown; one of %s", f.Kind, strings.Join(names(), ", "))
	case target != "" && f.Target == "":
		return fmt.Errorf("fault %q: target missing; give a %s, or * for all", f.Kind, target)
	case target == "" && f.Target != "":
		return fmt.Errorf("fault %q: target %q given; it takes none", f.Kind, f.Target)
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
	if s == nil {
		return Fault{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	for _, f := range s.faults {
		if f.Kind == kind && (f.Target == target || f.Target == "*" || f.Target == "") {
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

func names() []string {
	var out []string
	for k := range Kinds {
		out = append(out, string(k))
	}
	slices.Sort(out)
	return out
}
