package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/gen/xslices"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	// talosAtOnce is how many nodes are asked at the same time.
	talosAtOnce = 32
	// servicesEvery is how often a node's services are listed while they are watched. The watch only shows whether they run, and receives
	// nothing from a node that was switched off. With many nodes it is servicesShare for each declared node.
	servicesEvery = 5 * time.Second
	servicesShare = 100 * time.Millisecond
	// unhealthyEvery is the same while a service is not healthy, because its messages change.
	unhealthyEvery = 2 * time.Second
	// etcdEvery is how often a healthy etcd is asked. The Talos API has no watch for it.
	etcdEvery = 2 * time.Second
	// unreachableShare, for each declared node, is how often a node that does not answer is asked again; pollEvery at least.
	unreachableShare = 10 * time.Millisecond
	// fresh is how old an answer may be for a confirmation.
	fresh = time.Second
	// gather is for how long events are collected after the first: when one service starts, others do.
	gather = 20 * time.Millisecond
)

// talosNodes reads the Talos API of each node.
type talosNodes struct {
	talos *Talos
	spec  *gate.Spec
	store *store[gate.Cluster]

	mu    sync.Mutex
	asked map[string]time.Time // when a node's services were listed, by its name
}

func (n *talosNodes) watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, node := range n.spec.Nodes {
		running.Go(func() { n.watchServices(ctx, node) })
		running.Go(func() { n.askParameters(ctx, node) })
		if n.spec.Versions != nil {
			running.Go(func() { n.askVersion(ctx, node) })
		}
		if node.Role != cluster.ControlPlane {
			continue
		}
		running.Go(func() { n.watchEtcd(ctx, node) })
		if n.spec.Network != nil {
			running.Go(func() { n.askRanges(ctx, node) })
		}
	}
}

func (n *talosNodes) confirm(ctx context.Context) {
	n.mu.Lock()
	stale := xslices.Filter(n.spec.Nodes, func(node gate.Machine) bool { return time.Since(n.asked[node.Name]) > fresh })
	n.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { limited(ctx, talosAtOnce, stale, func(node gate.Machine) { n.askServices(ctx, node) }) })
	for _, node := range n.spec.Nodes {
		if node.Role == cluster.ControlPlane {
			running.Go(func() { n.askEtcd(ctx, node, false) })
		}
	}
}

// update changes what was read of a node.
func (n *talosNodes) update(node gate.Machine, change func(*gate.TalosNode)) {
	n.store.update(func(c *gate.Cluster) {
		seen := c.Talos[node.Name]
		change(&seen)
		put(&c.Talos, node.Name, seen)
	})
}

// watchServices lists a node's services, and again whenever one starts, stops, or changes its health.
func (n *talosNodes) watchServices(ctx context.Context, node gate.Machine) {
	unreachable := max(pollEvery, time.Duration(len(n.spec.Nodes))*unreachableShare)
	for ctx.Err() == nil {
		if reached, _ := n.askServices(ctx, node); !reached {
			pause(ctx, unreachable)
			continue
		}
		watching, stop := context.WithCancel(ctx)
		events := make(chan state.Event)
		if n.talos.watchServices(watching, node, events) != nil {
			pause(ctx, unreachable)
		} else {
			n.follow(watching, node, events)
		}
		stop()
	}
}

// follow lists the services once the watch is established, and after each event. It returns when the node cannot be reached or the watch
// ended.
func (n *talosNodes) follow(ctx context.Context, node gate.Machine, events <-chan state.Event) {
	for {
		reached, healthy := n.askServices(ctx, node)
		if !reached {
			return
		}
		wait := unhealthyEvery
		if healthy {
			wait = max(servicesEvery, time.Duration(len(n.spec.Nodes))*servicesShare)
		}
		select {
		case event := <-events:
			if event.Type == state.Errored {
				return
			}
			drain(ctx, events)
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// drain drops the events of the next moments.
func drain(ctx context.Context, events <-chan state.Event) {
	end := time.After(gather)
	for {
		select {
		case <-events:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (n *talosNodes) askServices(ctx context.Context, node gate.Machine) (reached, healthy bool) {
	n.mu.Lock()
	first := n.asked[node.Name].IsZero()
	n.mu.Unlock()
	var services map[string]talosapi.Service
	err := asked(ctx, first, func() (err error) {
		services, err = n.talos.services(ctx, node)
		return err
	}, func(err error) bool { return err != nil && temporary(broken(err)) })
	if ctx.Err() != nil {
		return false, false
	}
	hint := ""
	if status.Code(err) == codes.Unavailable {
		hint = talosapi.Hint(ctx, node.Address.String())
	}
	n.mu.Lock()
	put(&n.asked, node.Name, time.Now())
	n.mu.Unlock()
	n.update(node, func(seen *gate.TalosNode) {
		seen.Asked, seen.Err, seen.Hint = true, nil, hint
		if err != nil {
			seen.Err = broken(err)
		} else {
			seen.Services = services
		}
	})
	for _, service := range services {
		if service.Sick() {
			return true, false
		}
	}
	return err == nil, err == nil
}

func (n *talosNodes) watchEtcd(ctx context.Context, node gate.Machine) {
	for first := true; ctx.Err() == nil; first = false {
		wait := pollEvery
		if n.askEtcd(ctx, node, first) {
			wait = etcdEvery
		}
		pause(ctx, wait)
	}
}

// askEtcd asks a control plane for etcd, and reports whether it is healthy and complete.
func (n *talosNodes) askEtcd(ctx context.Context, node gate.Machine, first bool) bool {
	etcd := asked(ctx, first, func() gate.Etcd { return n.talos.etcd(ctx, node) },
		func(etcd gate.Etcd) bool { return temporary(etcd.Err) || temporary(etcd.StatusErr) })
	if ctx.Err() != nil {
		return false
	}
	n.update(node, func(seen *gate.TalosNode) { seen.Etcd = etcd })
	controlPlanes := 0
	for _, other := range n.spec.Nodes {
		if other.Role == cluster.ControlPlane {
			controlPlanes++
		}
	}
	unfinished := slices.ContainsFunc(etcd.Members, func(m talosapi.Member) bool { return m.Learner || m.Name == "" })
	healthy := etcd.Err == nil && etcd.StatusErr == nil && etcd.Leader != 0 && len(etcd.Alarms) == 0
	return healthy && len(etcd.Members) == controlPlanes && !unfinished
}

// askVersion asks until the declared version runs.
func (n *talosNodes) askVersion(ctx context.Context, node gate.Machine) {
	keepAsking(ctx, unhealthyEvery, func() gate.Version { return n.talos.version(ctx, node) },
		func(version gate.Version) bool { return temporary(version.Err) },
		func(version gate.Version) bool {
			n.update(node, func(seen *gate.TalosNode) { seen.Version = &version })
			return version.Runs == n.spec.Versions.Talos
		})
}

// askParameters asks until the kernel has taken all parameters. With many nodes it asks less often: a misspelt parameter is never taken, on
// any of them.
func (n *talosNodes) askParameters(ctx context.Context, node gate.Machine) {
	every := max(unhealthyEvery, time.Duration(len(n.spec.Nodes))*servicesShare)
	keepAsking(ctx, every, func() gate.KernelParameters { return n.talos.unsetParameters(ctx, node) },
		func(parameters gate.KernelParameters) bool { return temporary(parameters.Err) },
		func(parameters gate.KernelParameters) bool {
			n.update(node, func(seen *gate.TalosNode) { seen.Parameters = &parameters })
			return parameters.Err == nil && len(parameters.Unset) == 0
		})
}

// askRanges asks until there is an answer. The answer does not change while the node runs.
func (n *talosNodes) askRanges(ctx context.Context, node gate.Machine) {
	keepAsking(ctx, time.Second, func() gate.ControllerRanges { return n.talos.controllerRanges(ctx, node) },
		func(ranges gate.ControllerRanges) bool { return temporary(ranges.Err) },
		func(ranges gate.ControllerRanges) bool {
			n.update(node, func(seen *gate.TalosNode) { seen.Ranges = &ranges })
			return ranges.Err == nil || ranges.Err.Unknown
		})
}

// keepAsking asks until take says that an answer is final. The first answer is asked for once more if it has failed.
func keepAsking[T any](ctx context.Context, every time.Duration, ask func() T, failed, take func(T) bool) {
	for first := true; ctx.Err() == nil; first = false {
		answer := asked(ctx, first, ask, failed)
		if ctx.Err() != nil || take(answer) {
			return
		}
		pause(ctx, every)
	}
}

// pause returns after a time, or when a context ends.
var pause = probe.Pause
