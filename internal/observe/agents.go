package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

const (
	// agentsAtOnce is how many agents are asked at the same time.
	agentsAtOnce = 32
	// While something is wrong only this many of the agents that are unhappy are asked again at a time, in turns: with many nodes one
	// dead path makes all of them unhappy. As soon as one turns happy, all others are asked.
	unhappyAtOnce = 2
	// An agent that gives no answer at all is asked again after this long.
	silentEvery = time.Second
	// statusFresh is how old an agent's own status may be to serve as a confirmation: Readiness is watched, and says nearly the same.
	statusFresh = 30 * time.Second
)

// agents keeps what Cilium's agents say. Each is asked for its status once it is Ready, and for its view of the others once all are:
// before, it would only say that those are missing. What is good is not asked for again until everything else holds, too.
type agents struct {
	kube  *Kube
	spec  *health.GateSpec
	store *Store[health.Cluster]

	mu      sync.Mutex
	reports map[string]*report // by node
	burst   bool               // one has turned happy: ask all others
}

// report is what one agent has been asked. Its times are zero before it has answered.
type report struct {
	asking sync.Mutex // one at a time

	pod                      health.Pod
	healthAsked, statusAsked time.Time
	healthGood, statusGood   bool
	silent                   bool // the last question was not answered
	busy                     bool
}

func newAgents(kube *Kube, spec *health.GateSpec, store *Store[health.Cluster]) *agents {
	return &agents{kube: kube, spec: spec, store: store, reports: map[string]*report{}}
}

func (a *agents) watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, agentsAtOnce)
	ticker := time.NewTicker(pollEvery / 2)
	defer ticker.Stop()
	for {
		for _, task := range a.due() {
			running.Go(func() {
				defer a.idle(task.report)
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-slots }()
				a.ask(ctx, task)
			})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// task is what to ask one agent.
type task struct {
	node           string
	report         *report
	health, status bool
}

// due lists whom to ask now. It asks nobody itself: it runs often.
func (a *agents) due() []task {
	ready := a.ready()
	a.mu.Lock()
	defer a.mu.Unlock()
	for node, r := range a.reports {
		if pod, still := ready[node]; !still || pod.Name != r.pod.Name {
			delete(a.reports, node)
			a.store.Update(func(seen *health.Cluster) {
				delete(seen.CiliumHealth, node)
				delete(seen.CiliumStatus, node)
			})
		}
	}
	all := true
	for _, node := range a.spec.Nodes {
		pod, is := ready[node.Name]
		all = all && is
		if is && a.reports[node.Name] == nil {
			a.reports[node.Name] = &report{pod: pod}
		}
	}
	var first, again []task
	for node, r := range a.reports {
		if r.busy {
			continue
		}
		t := task{node: node, report: r, status: !r.statusGood, health: all && !r.healthGood}
		switch {
		case t.status && r.statusAsked.IsZero() || t.health && r.healthAsked.IsZero():
			t.status, t.health = t.status && r.statusAsked.IsZero(), t.health && r.healthAsked.IsZero()
			first = append(first, t)
		case t.status || t.health:
			again = append(again, t)
		}
	}
	slices.SortFunc(again, func(x, y task) int { return cmp.Compare(x.report.age(), y.report.age()) * -1 })
	if !a.burst {
		again = slices.DeleteFunc(again, func(t task) bool {
			return t.report.age() < pollEvery || t.report.silent && t.report.age() < silentEvery
		})
		again = again[:min(len(again), unhappyAtOnce)]
	}
	a.burst = false
	due := slices.Concat(first, again)
	for _, t := range due {
		t.report.busy = true
	}
	return due
}

// age is how long ago the agent was last asked.
func (r *report) age() time.Duration {
	newest := r.healthAsked
	if r.statusAsked.After(newest) {
		newest = r.statusAsked
	}
	return time.Since(newest)
}

func (a *agents) idle(r *report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.busy = false
}

// ready are the agents that can be asked, by node.
func (a *agents) ready() map[string]health.Pod {
	ready := map[string]health.Pod{}
	a.store.Read(func(seen *health.Cluster) {
		for _, pod := range seen.Agents.Items {
			if pod.Ready && !pod.Deleting {
				ready[pod.Node] = pod
			}
		}
	})
	return ready
}

// confirm asks every agent whose answer is not of just now.
func (a *agents) confirm(ctx context.Context) {
	var tasks []task
	a.mu.Lock()
	for node, r := range a.reports {
		t := task{node: node, report: r, health: time.Since(r.healthAsked) > fresh, status: time.Since(r.statusAsked) > statusFresh}
		if t.health || t.status {
			tasks = append(tasks, t)
		}
	}
	a.mu.Unlock()
	limited(ctx, agentsAtOnce, tasks, func(t task) { a.ask(ctx, t) })
}

func (a *agents) ask(ctx context.Context, t task) {
	t.report.asking.Lock()
	defer t.report.asking.Unlock()
	if t.status {
		status := a.kube.ciliumStatus(ctx, t.report.pod)
		a.note(ctx, t, status.Err != "", func(seen *health.Cluster) {
			put(&seen.CiliumStatus, t.node, status)
		}, &t.report.statusAsked, &t.report.statusGood, status.Err == "" && len(status.Problems) == 0)
	}
	if t.health {
		reach := a.kube.ciliumHealth(ctx, t.report.pod)
		a.note(ctx, t, reach.Err != "", func(seen *health.Cluster) {
			put(&seen.CiliumHealth, t.node, reach)
		}, &t.report.healthAsked, &t.report.healthGood, reach.Healthy() && a.knowsAll(reach))
	}
}

// knowsAll reports whether an agent has heard of every declared node.
func (a *agents) knowsAll(reach health.CiliumHealth) bool {
	return !slices.ContainsFunc(a.spec.Nodes, func(node health.Node) bool {
		_, known := reach.Peers[node.Name]
		return !known
	})
}

// note stores an answer, unless its pod has gone in the meantime.
func (a *agents) note(ctx context.Context, t task, silent bool, store func(*health.Cluster), asked *time.Time, was *bool, good bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || a.reports[t.node] != t.report {
		return
	}
	a.burst = a.burst || good && !*was && !asked.IsZero()
	*asked, *was, t.report.silent = time.Now(), good, silent
	a.store.Update(store)
}

func put[T any](m *map[string]T, key string, value T) {
	if *m == nil {
		*m = map[string]T{}
	}
	(*m)[key] = value
}
