package observe

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/health"
)

var (
	nodesKind        = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podsKind         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	eventsKind       = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	configMapsKind   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	daemonSetsKind   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	deploymentsKind  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	serviceCIDRsKind = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"}
	ciliumNodesKind  = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
)

// Gate keeps in its store what the checks of a gate read. It only reads: objects by list and watch, Talos by its read-only calls, and
// Cilium's agents by two commands that print their status.
type Gate struct {
	Store *Store[health.Cluster]

	spec   *health.GateSpec
	kube   *Kube
	talos  *talosNodes
	agents *agents // nil where no CNI is expected
}

// NewGate asks nothing yet.
func NewGate(spec *health.GateSpec, kube *Kube, talos *Talos) *Gate {
	g := &Gate{Store: NewStore[health.Cluster](), spec: spec, kube: kube}
	g.talos = &talosNodes{talos: talos, spec: spec, store: g.Store}
	if spec.Cilium != nil {
		g.agents = newAgents(kube, spec, g.Store)
	}
	return g
}

// Watch looks until ctx ends, and returns when everything it started has ended.
func (g *Gate) Watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		g.kube.WatchReadiness(ctx, func(api health.APIServer) { g.Store.Update(func(c *health.Cluster) { c.API = api }) })
	})
	running.Go(func() { g.talos.watch(ctx) })
	keep(ctx, g, &running, Kind{GroupVersionResource: nodesKind}, kubeNode, func(c *health.Cluster) *health.Seen[health.KubeNode] { return &c.Nodes })
	if g.spec.Network != nil {
		keep(ctx, g, &running, Kind{GroupVersionResource: serviceCIDRsKind}, plain(serviceCIDR), func(c *health.Cluster) *health.Seen[health.Ranges] { return &c.Services })
	}
	cilium := g.spec.Cilium
	if cilium == nil {
		return
	}
	agents := Kind{GroupVersionResource: podsKind, Namespace: cilium.Namespace, Labels: cilium.AgentSelector}
	keep(ctx, g, &running, agents, kubePod, func(c *health.Cluster) *health.Seen[health.Pod] { return &c.Agents })
	operators := Kind{GroupVersionResource: podsKind, Namespace: cilium.Namespace, Labels: cilium.OperatorSelector}
	keep(ctx, g, &running, operators, kubePod, func(c *health.Cluster) *health.Seen[health.Pod] { return &c.Operators })
	agents.GroupVersionResource, operators.GroupVersionResource = daemonSetsKind, deploymentsKind
	keep(ctx, g, &running, agents, plain(workload), func(c *health.Cluster) *health.Seen[health.Workload] { return &c.AgentSets })
	keep(ctx, g, &running, operators, plain(workload), func(c *health.Cluster) *health.Seen[health.Workload] { return &c.Operator })
	config := Kind{GroupVersionResource: configMapsKind, Namespace: cilium.Namespace, Name: "cilium-config"}
	keep(ctx, g, &running, config, plain(settings), func(c *health.Cluster) *health.Seen[health.Settings] { return &c.Config })
	if g.spec.Network != nil {
		keep(ctx, g, &running, Kind{GroupVersionResource: ciliumNodesKind}, plain(ciliumNode), func(c *health.Cluster) *health.Seen[health.Ranges] { return &c.Ranges })
	}
	running.Go(func() { g.agents.watch(ctx) })
}

// Confirm asks once more for what is not watched, unless it has just been asked, and returns when the answers are in the store.
func (g *Gate) Confirm(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { g.talos.confirm(ctx) })
	if g.agents != nil {
		running.Go(func() { g.agents.confirm(ctx) })
	}
}

func keep[T any](ctx context.Context, g *Gate, running *sync.WaitGroup, kind Kind, convert Convert[T], place func(*health.Cluster) *health.Seen[T]) {
	running.Go(func() { Watch(ctx, g.kube, kind, convert, into(g.Store, place)) })
}

// into publishes a collection to its place in the store.
func into[S, T any](store *Store[S], place func(*S) *health.Seen[T]) func(health.Seen[T]) {
	return func(seen health.Seen[T]) { store.Update(func(s *S) { *place(s) = seen }) }
}

// limited runs f for every item, at most n at a time, until ctx ends.
func limited[T any](ctx context.Context, n int, items []T, f func(T)) {
	slots := make(chan struct{}, n)
	var running sync.WaitGroup
	defer running.Wait()
	for _, item := range items {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		running.Go(func() {
			defer func() { <-slots }()
			f(item)
		})
	}
}
