package cilium

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cilium is the shared state of the agents and operators of one cluster. The zero value is ready for use. Traffic,
// policies, BPF and Hubble's flows are not modelled.
type Cilium struct {
	Second time.Duration  // how long a second of Cilium's health probing takes; 0 means a millisecond
	CRDs   string         // directory with Cilium's CRDs; empty: the operator installs none
	Server workload.Image // of the mesh API server, which has the program that finds faults in connections to peers

	wait.Changes // an agent starts, ends or becomes ready, or the CRDs were made

	mu        sync.Mutex
	agents    map[string]*agent // running ones, by node
	joined    map[string]bool   // nodes whose agent has been ready, so that the others know them
	operators []*operator       // running ones; the first is the leader

	mesh meshFiles

	crds struct {
		sync.Mutex
		there bool
		asked time.Time
	}
}

// Find returns the behaviour of a container of Cilium; nil for any other.
func (n *Cilium) Find(c workload.Container) workload.Behaviour {
	name := path.Base(c.Repository())
	switch {
	case c.RunsToCompletion && c.Spec.Name == "config" && c.Pod.Labels["k8s-app"] == "cilium":
		return buildConfig
	case c.RunsToCompletion:
		return nil
	case c.Spec.Name == "cilium-agent" && strings.HasPrefix(name, "cilium"):
		return n.startAgent
	case strings.HasPrefix(name, "operator") && c.Pod.Labels["name"] == "cilium-operator":
		return n.startOperator
	}
	return nil
}

func (n *Cilium) join(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agents == nil {
		n.agents, n.joined = map[string]*agent{}, map[string]bool{}
	}
	n.agents[a.Node] = a
	n.Notify()
}

func (n *Cilium) leave(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.agents[a.Node] == a {
		delete(n.agents, a.Node)
		n.Notify()
	}
}

// Ready tells whether a ready agent runs on the node.
func (n *Cilium) Ready(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.agents[node]
	return ok && a.Instance.Ready()
}

// ready returns the configurations of the ready agents, by node.
func (n *Cilium) ready() map[string]ciliumConfig {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]ciliumConfig{}
	for node, a := range n.agents {
		if a.Instance.Ready() {
			out[node] = a.settings()
		}
	}
	return out
}

// NodeChanged tells the node's agent that the Node object or a pod on the node has changed.
func (n *Cilium) NodeChanged(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.agents[node]; a != nil {
		a.poke()
	}
}

// known tells whether the other agents know the node's agent.
func (n *Cilium) known(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.joined[node]
}

func (n *Cilium) introduce(a *agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.joined[a.Node] = true
	n.Notify()
}

// addOperator adds an operator; remove removes it.
func (n *Cilium) addOperator(o *operator) (remove func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.operators = append(n.operators, o)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.operators = slices.DeleteFunc(n.operators, func(other *operator) bool { return other == o })
		n.Notify()
	}
}

// isLeader tells whether the operator is the one that acts.
func (n *Cilium) isLeader(o *operator) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.operators) > 0 && n.operators[0] == o
}

// crdsExist tells whether Cilium's CRDs exist. All agents of a cluster ask at the same time, so the API server is asked
// once a second.
func (n *Cilium) crdsExist(ctx context.Context, c *workload.Cluster) bool {
	n.crds.Lock()
	defer n.crds.Unlock()
	if n.crds.there || time.Since(n.crds.asked) < time.Second {
		return n.crds.there
	}
	n.crds.asked = time.Now()
	_, err := c.Dynamic.Resource(ciliumNodes).List(ctx, metav1.ListOptions{Limit: 1})
	n.crds.there = err == nil
	return n.crds.there
}

// crdsInstalled records that the operator has created the CRDs.
func (n *Cilium) crdsInstalled() {
	n.crds.Lock()
	n.crds.asked = time.Time{}
	n.crds.Unlock()
	n.Notify()
}
