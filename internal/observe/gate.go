package observe

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/health/own"
)

var (
	cronJobsKind    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	ciliumNodesKind = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
)

// Gate reads what the checks of package gate judge. It lists and watches objects, uses read-only calls of Talos, and runs two commands in
// Cilium's agents that print a status. It changes nothing, unless the spec says Approve: then it approves certificates of kubelets.
type Gate struct {
	*observer[gate.Spec, gate.Cluster]
	askers
}

// NewGate returns a Gate that has read nothing yet.
func NewGate(spec *gate.Spec, kube *Kube, talos *Talos) *Gate {
	g := &Gate{observer: newObserver(spec, kube, gate.Evaluate)}
	g.talos, g.askers = talos, askers{&talosNodes{talos: talos, spec: spec, store: g.store}}
	if spec.Cilium != nil {
		g.askers = append(g.askers, g.agents()...)
	}
	return g
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (g *Gate) Watch(ctx context.Context) {
	w := &watches[gate.Cluster]{ctx: ctx, kube: g.kube, store: g.store}
	defer w.Wait()
	w.Go(func() {
		g.kube.watchReadiness(ctx, func(api gate.APIServer) { g.update(func(c *gate.Cluster) { c.API = api }) })
	})
	keep(w, kind{GroupVersionResource: kubeapi.Nodes}, kubeNode, func(c *gate.Cluster) *health.Seen[gate.Node] { return &c.Nodes })
	if g.spec.Network != nil {
		keep(w, kind{GroupVersionResource: kubeapi.ServiceCIDRs}, plain(serviceCIDR),
			func(c *gate.Cluster) *health.Seen[gate.Ranges] { return &c.Services })
	}
	if g.spec.Versions != nil {
		for _, node := range g.spec.Nodes {
			if node.Role == cluster.ControlPlane {
				w.Go(func() { g.askAPIVersion(ctx, node) })
			}
		}
	}
	if g.spec.Cilium != nil {
		g.watchCilium(w)
	}
	if g.spec.Backup != nil {
		g.watchBackup(w)
	}
	if g.spec.Approve {
		w.Go(func() { g.approve(ctx) })
	}
	watchOwn(w, g.spec.Checks, func(c *gate.Cluster) *own.Seen { return &c.Own })
	for _, one := range g.askers {
		w.Go(func() { one.watch(ctx) })
	}
}

func (g *Gate) watchCilium(w *watches[gate.Cluster]) {
	of := func(resource schema.GroupVersionResource, labels string) kind {
		return kind{GroupVersionResource: resource, Namespace: g.spec.Cilium.Namespace, Labels: labels}
	}
	keep(w, of(kubeapi.Pods, cluster.CiliumAgentSelector), kubePod, func(c *gate.Cluster) *health.Seen[kube.Pod] { return &c.Agents })
	keep(w, of(kubeapi.Pods, gate.OperatorSelector), kubePod, func(c *gate.Cluster) *health.Seen[kube.Pod] { return &c.Operators })
	keep(w, of(kubeapi.DaemonSets, cluster.CiliumAgentSelector), plain(workload),
		func(c *gate.Cluster) *health.Seen[kube.Workload] { return &c.AgentSets })
	keep(w, of(kubeapi.Pods, gate.EnvoySelector), kubePod, func(c *gate.Cluster) *health.Seen[kube.Pod] { return &c.Envoys })
	keep(w, of(kubeapi.DaemonSets, gate.EnvoySelector), plain(workload),
		func(c *gate.Cluster) *health.Seen[kube.Workload] { return &c.EnvoySets })
	keep(w, of(kubeapi.Deployments, gate.OperatorSelector), plain(workload),
		func(c *gate.Cluster) *health.Seen[kube.Workload] { return &c.Operator })
	config := of(kubeapi.ConfigMaps, "")
	config.Name = "cilium-config"
	keep(w, config, plain(settings), func(c *gate.Cluster) *health.Seen[gate.Settings] { return &c.Config })
	if g.spec.Network != nil {
		keep(w, kind{GroupVersionResource: ciliumNodesKind}, plain(ciliumNode),
			func(c *gate.Cluster) *health.Seen[gate.Ranges] { return &c.Ranges })
	}
}

// askAPIVersion asks a control plane's own API server until the declared version runs.
func (g *Gate) askAPIVersion(ctx context.Context, node gate.Machine) {
	for ctx.Err() == nil {
		version := g.kube.version(ctx, node.Address)
		if ctx.Err() != nil {
			return
		}
		g.update(func(c *gate.Cluster) { put(&c.APIServers, node.Name, version) })
		if version.Runs == g.spec.Versions.Kubernetes {
			return
		}
		pause(ctx, pollEvery)
	}
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
