package observe

import (
	"context"
	"sync"

	"github.com/slipway-platform/slipway/components/readiness/health"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	nodesKind       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podsKind        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	daemonSetsKind  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	deploymentsKind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Cluster keeps in store what the checks of a gate read, until ctx ends. It returns when everything it started has ended.
func Cluster(ctx context.Context, spec *health.GateSpec, kube *Kube, talos *Talos, store *Store[health.Cluster]) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		kube.WatchReadiness(ctx, func(api health.APIServer) { store.Update(func(c *health.Cluster) { c.API = api }) })
	})
	running.Go(func() {
		Watch(ctx, kube, Kind{GroupVersionResource: nodesKind}, kubeNode, into(store, func(c *health.Cluster) *health.Seen[health.KubeNode] { return &c.Nodes }))
	})
	for _, node := range spec.Nodes {
		running.Go(func() {
			talos.WatchNode(ctx, node, func(seen health.TalosNode) {
				store.Update(func(c *health.Cluster) {
					if c.Talos == nil {
						c.Talos = map[string]health.TalosNode{}
					}
					c.Talos[node.Name] = seen
				})
			})
		})
	}
	cilium := spec.Cilium
	if cilium == nil {
		return
	}
	running.Go(func() {
		kind := Kind{GroupVersionResource: podsKind, Namespace: cilium.Namespace, Labels: cilium.AgentSelector}
		Watch(ctx, kube, kind, kubePod, into(store, func(c *health.Cluster) *health.Seen[health.Pod] { return &c.Agents }))
	})
	running.Go(func() {
		kind := Kind{GroupVersionResource: podsKind, Namespace: cilium.Namespace, Labels: cilium.OperatorSelector}
		Watch(ctx, kube, kind, kubePod, into(store, func(c *health.Cluster) *health.Seen[health.Pod] { return &c.Operators }))
	})
	running.Go(func() {
		kind := Kind{GroupVersionResource: daemonSetsKind, Namespace: cilium.Namespace, Labels: cilium.AgentSelector}
		Watch(ctx, kube, kind, workload, into(store, func(c *health.Cluster) *health.Seen[health.Workload] { return &c.AgentSets }))
	})
	running.Go(func() {
		kind := Kind{GroupVersionResource: deploymentsKind, Namespace: cilium.Namespace, Labels: cilium.OperatorSelector}
		Watch(ctx, kube, kind, workload, into(store, func(c *health.Cluster) *health.Seen[health.Workload] { return &c.Operator }))
	})
	running.Go(func() { WatchCiliumHealth(ctx, kube, store) })
}

// into publishes a collection to its place in the store.
func into[S, T any](store *Store[S], place func(*S) *health.Seen[T]) func(health.Seen[T]) {
	return func(seen health.Seen[T]) { store.Update(func(s *S) { *place(s) = seen }) }
}
