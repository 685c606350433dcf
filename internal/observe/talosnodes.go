package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/slipway-platform/slipway/internal/health"
)

const (
	// talosAtOnce is how many nodes are asked at the same time.
	talosAtOnce = 32
	// While a node's services are watched they are asked for all the same now and then: the watch tells only whether they run, and one
	// on a machine that was switched off tells nothing.
	servicesEvery = 5 * time.Second
	servicesShare = 100 * time.Millisecond // for each declared node, where that is more
	// unwellEvery is the same while a service is not well, for what it says of itself changes.
	unwellEvery = 2 * time.Second
	// etcdEvery is how often an etcd is asked that is well; nothing in the Talos API lets it be watched.
	etcdEvery = 2 * time.Second
	// A node that does not answer is asked again after this long for each declared node, and no sooner than pollEvery.
	unreachableShare = 10 * time.Millisecond
	// fresh is how old an answer may be to serve as a confirmation.
	fresh = time.Second
	// Changes come in bunches: when a service starts, others do.
	gather = 20 * time.Millisecond
)

// talosNodes keeps what the Talos API says of each node.
type talosNodes struct {
	talos *Talos
	spec  *health.GateSpec
	store *Store[health.Cluster]

	mu    sync.Mutex
	asked map[string]time.Time // when a node's services were asked for, by its name
}

func (n *talosNodes) watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, node := range n.spec.Nodes {
		running.Go(func() { n.watchServices(ctx, node) })
		if node.Role != health.ControlPlane {
			continue
		}
		running.Go(func() { n.watchEtcd(ctx, node) })
		if n.spec.Network != nil {
			running.Go(func() { n.askGiven(ctx, node) })
		}
	}
}

func (n *talosNodes) confirm(ctx context.Context) {
	var stale []health.Node
	n.mu.Lock()
	for _, node := range n.spec.Nodes {
		if time.Since(n.asked[node.Name]) > fresh {
			stale = append(stale, node)
		}
	}
	n.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { limited(ctx, talosAtOnce, stale, func(node health.Node) { n.askServices(ctx, node) }) })
	for _, node := range n.spec.Nodes {
		if node.Role == health.ControlPlane {
			running.Go(func() { n.askEtcd(ctx, node) })
		}
	}
}

// update changes what is known of a node.
func (n *talosNodes) update(node health.Node, change func(*health.TalosNode)) {
	n.store.Update(func(c *health.Cluster) {
		if c.Talos == nil {
			c.Talos = map[string]health.TalosNode{}
		}
		seen := c.Talos[node.Name]
		change(&seen)
		c.Talos[node.Name] = seen
	})
}

// watchServices asks for a node's services, and again whenever one starts, stops, or changes its health.
func (n *talosNodes) watchServices(ctx context.Context, node health.Node) {
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

// follow asks once the watch is up, and after each event. It ends when the node cannot be reached, or the watch cannot go on.
func (n *talosNodes) follow(ctx context.Context, node health.Node, events <-chan state.Event) {
	for {
		reached, well := n.askServices(ctx, node)
		if !reached {
			return
		}
		wait := unwellEvery
		if well {
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

// drain swallows what comes in a bunch.
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

func (n *talosNodes) askServices(ctx context.Context, node health.Node) (reached, well bool) {
	services, err := n.talos.services(ctx, node)
	if ctx.Err() != nil {
		return false, false
	}
	n.mu.Lock()
	if n.asked == nil {
		n.asked = map[string]time.Time{}
	}
	n.asked[node.Name] = time.Now()
	n.mu.Unlock()
	n.update(node, func(seen *health.TalosNode) {
		seen.Asked, seen.Err = true, nil
		if err != nil {
			seen.Err = broken(err)
		} else {
			seen.Services = services
		}
	})
	for _, service := range services {
		if service.State != "Running" || service.Known && !service.Healthy {
			return true, false
		}
	}
	return err == nil, err == nil
}

func (n *talosNodes) watchEtcd(ctx context.Context, node health.Node) {
	for ctx.Err() == nil {
		wait := pollEvery
		if n.askEtcd(ctx, node) {
			wait = etcdEvery
		}
		pause(ctx, wait)
	}
}

// askEtcd reports whether there is nothing left to wait for.
func (n *talosNodes) askEtcd(ctx context.Context, node health.Node) bool {
	etcd := n.talos.etcd(ctx, node)
	if ctx.Err() != nil {
		return false
	}
	n.update(node, func(seen *health.TalosNode) { seen.Etcd = etcd })
	controlPlanes := 0
	for _, other := range n.spec.Nodes {
		if other.Role == health.ControlPlane {
			controlPlanes++
		}
	}
	unfinished := slices.ContainsFunc(etcd.Members, func(m health.EtcdMember) bool { return m.Learner || m.Name == "" })
	return etcd.Err == nil && etcd.StatusErr == nil && etcd.Leader != 0 && len(etcd.Alarms) == 0 && len(etcd.Members) == controlPlanes && !unfinished
}

// askGiven asks until there is an answer; what it asks for does not change while the node runs.
func (n *talosNodes) askGiven(ctx context.Context, node health.Node) {
	for ctx.Err() == nil {
		given := n.talos.given(ctx, node)
		if ctx.Err() != nil {
			return
		}
		n.update(node, func(seen *health.TalosNode) { seen.Given = &given })
		if given.Err == nil || given.Err.Unknown {
			return
		}
		pause(ctx, time.Second)
	}
}

// pause ends after d, or with ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
