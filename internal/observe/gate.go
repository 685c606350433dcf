package observe

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var (
	namespacesKind   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodesKind        = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podsKind         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	eventsKind       = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	configMapsKind   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	daemonSetsKind   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	deploymentsKind  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	serviceCIDRsKind = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"}
	ciliumNodesKind  = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
)

// Gate reads what the checks of package gate judge. It changes nothing: it lists and watches objects, uses read-only calls of Talos, and
// runs two commands in Cilium's agents that print their status.
type Gate struct {
	*store[gate.Cluster]
	Answerer

	spec   *gate.Spec
	nodes  *talosNodes
	agents *agents // nil if no CNI is expected
}

// NewGate returns a Gate that has read nothing yet.
func NewGate(spec *gate.Spec, kube *Kube, talos *Talos) *Gate {
	g := &Gate{store: newStore[gate.Cluster](), Answerer: Answerer{kube: kube, talos: talos}, spec: spec}
	g.nodes = &talosNodes{talos: talos, spec: spec, store: g.store}
	if spec.Cilium != nil {
		g.agents = newAgents(kube, spec, g.store)
	}
	return g
}

// Evaluate judges what was read.
func (g *Gate) Evaluate() []health.Result {
	return g.evaluate(func(seen *gate.Cluster) []health.Result { return gate.Evaluate(g.spec, seen) })
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (g *Gate) Watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		g.kube.watchReadiness(ctx, func(api gate.APIServer) { g.update(func(c *gate.Cluster) { c.API = api }) })
	})
	running.Go(func() { g.nodes.watch(ctx) })
	keep(ctx, g, &running, kind{GroupVersionResource: nodesKind}, kubeNode, func(c *gate.Cluster) *health.Seen[gate.Node] { return &c.Nodes })
	if g.spec.Network != nil {
		keep(ctx, g, &running, kind{GroupVersionResource: serviceCIDRsKind}, plain(serviceCIDR),
			func(c *gate.Cluster) *health.Seen[gate.Ranges] { return &c.Services })
	}
	if g.spec.Versions != nil {
		for _, node := range g.spec.Nodes {
			if node.Role == cluster.ControlPlane {
				running.Go(func() { g.askAPIVersion(ctx, node) })
			}
		}
	}
	cilium := g.spec.Cilium
	if cilium == nil {
		return
	}
	agents := kind{GroupVersionResource: podsKind, Namespace: cilium.Namespace, Labels: cilium.AgentSelector}
	keep(ctx, g, &running, agents, kubePod, func(c *gate.Cluster) *health.Seen[kube.Pod] { return &c.Agents })
	operators := kind{GroupVersionResource: podsKind, Namespace: cilium.Namespace, Labels: cilium.OperatorSelector}
	keep(ctx, g, &running, operators, kubePod, func(c *gate.Cluster) *health.Seen[kube.Pod] { return &c.Operators })
	agents.GroupVersionResource, operators.GroupVersionResource = daemonSetsKind, deploymentsKind
	keep(ctx, g, &running, agents, plain(workload), func(c *gate.Cluster) *health.Seen[kube.Workload] { return &c.AgentSets })
	keep(ctx, g, &running, operators, plain(workload), func(c *gate.Cluster) *health.Seen[kube.Workload] { return &c.Operator })
	config := kind{GroupVersionResource: configMapsKind, Namespace: cilium.Namespace, Name: "cilium-config"}
	keep(ctx, g, &running, config, plain(settings), func(c *gate.Cluster) *health.Seen[gate.Settings] { return &c.Config })
	if g.spec.Network != nil {
		keep(ctx, g, &running, kind{GroupVersionResource: ciliumNodesKind}, plain(ciliumNode),
			func(c *gate.Cluster) *health.Seen[gate.Ranges] { return &c.Ranges })
	}
	running.Go(func() { g.agents.watch(ctx) })
}

// askAPIVersion asks a control plane's own API server until the declared version runs.
func (g *Gate) askAPIVersion(ctx context.Context, node gate.Machine) {
	for ctx.Err() == nil {
		version := g.kube.version(ctx, node.Address)
		if ctx.Err() != nil {
			return
		}
		g.update(func(c *gate.Cluster) {
			if c.APIServers == nil {
				c.APIServers = map[string]gate.Version{}
			}
			c.APIServers[node.Name] = version
		})
		if version.Runs == g.spec.Versions.Kubernetes {
			return
		}
		pause(ctx, pollEvery)
	}
}

// Confirm asks again for what cannot be watched, unless the answer is fresh, and returns when the answers are stored.
func (g *Gate) Confirm(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { g.nodes.confirm(ctx) })
	if g.agents != nil {
		running.Go(func() { g.agents.confirm(ctx) })
	}
}

// keep watches a kind and stores its objects.
func keep[T any](
	ctx context.Context, g *Gate, running *sync.WaitGroup, of kind, convert conversion[T], place func(*gate.Cluster) *health.Seen[T],
) {
	running.Go(func() { watchAll(ctx, g.kube, of, convert, into(g.store, place)) })
}

// limited runs f for every item, at most n at a time. It starts no more once ctx has ended.
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
