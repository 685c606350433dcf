package workload

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cilium is what the agents and operators of one cluster know of each other: who runs where, who leads. The zero value is
// ready for use. Traffic, policies, BPF, the mesh and Hubble's flows are not modelled.
type Cilium struct {
	mu        sync.Mutex
	agents    map[string]*agent // by node; those that run
	met       map[string]bool   // nodes that an agent has ever run on
	joined    map[string]bool   // nodes whose agent was ready once, so that the others know them
	operators []*operator       // those that run; the first one leads
	changed   chan struct{}

	definitions struct {
		sync.Mutex
		there bool
		asked time.Time
	}
}

func (n *Cilium) join(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agents == nil {
		n.agents, n.met, n.joined = map[string]*agent{}, map[string]bool{}, map[string]bool{}
	}
	n.agents[a.Node], n.met[a.Node] = a, true
	n.notify()
}

func (n *Cilium) leave(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agents[a.Node] == a {
		delete(n.agents, a.Node)
		n.notify()
	}
}

// Changed returns a channel that is closed when an agent next comes, goes or becomes ready. Take it before reading.
func (n *Cilium) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// Ready is whether a ready agent runs on the node.
func (n *Cilium) Ready(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.agents[node]
	return ok && a.Instance.Ready()
}

// NodeChanged tells the node's agent that the Node object is another one now.
func (n *Cilium) NodeChanged(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.agents[node]; a != nil {
		a.poke()
	}
}

// scheduled is whether an agent runs on the node, or has done so.
func (n *Cilium) scheduled(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met[node]
}

// known is whether the node's agent has made itself known to the others.
func (n *Cilium) known(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.joined[node]
}

func (n *Cilium) introduce(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.joined[a.Node] = true
	n.notify()
}

// enlist adds an operator; the returned function takes it out again.
func (n *Cilium) enlist(o *operator) (leave func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.operators = append(n.operators, o)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.operators = slices.DeleteFunc(n.operators, func(other *operator) bool { return other == o })
		n.notify()
	}
}

// leads is whether the operator is the one that acts; the others stand by.
func (n *Cilium) leads(o *operator) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.operators) > 0 && n.operators[0] == o
}

func (n *Cilium) poke() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notify()
}

func (n *Cilium) notify() {
	if n.changed != nil {
		close(n.changed)
	}
	n.changed = nil
}

// defined is whether Cilium's kinds exist. All agents of a cluster ask at the same time; one question a second goes to
// the API server.
func (n *Cilium) defined(ctx context.Context, c *Cluster) bool {
	n.definitions.Lock()
	defer n.definitions.Unlock()
	if n.definitions.there || time.Since(n.definitions.asked) < time.Second {
		return n.definitions.there
	}
	n.definitions.asked = time.Now()
	_, err := c.Dynamic.Resource(ciliumNodes).List(ctx, metav1.ListOptions{Limit: 1})
	n.definitions.there = err == nil
	return n.definitions.there
}

// installed notes that the operator has seen to the definitions.
func (n *Cilium) installed() {
	n.definitions.Lock()
	n.definitions.asked = time.Time{}
	n.definitions.Unlock()
	n.poke()
}
