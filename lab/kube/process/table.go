package process

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Info is a line of `lab status`.
type Info struct {
	Cluster string    `json:"cluster"`
	Node    string    `json:"node,omitempty"` // empty for the control plane
	Name    string    `json:"name"`
	PID     int       `json:"pid"`
	Log     string    `json:"log"`
	Started time.Time `json:"started"`
}

// Table lists the running real processes. The zero value is empty and ready for use. A nil Table lists nothing.
type Table struct {
	mu   sync.Mutex
	rows map[*Process]Info
}

// List returns the running processes in a stable order.
func (t *Table) List() []Info {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Info, 0, len(t.rows))
	for _, i := range t.rows {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
	})
	return out
}

func (t *Table) add(p *Process) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[*Process]Info{}
	}
	s := p.spec
	t.rows[p] = Info{Cluster: s.Cluster, Node: s.Node, Name: s.Name, PID: p.PID(), Log: s.Log, Started: time.Now()}
}

func (t *Table) remove(p *Process) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, p)
}
