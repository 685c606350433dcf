package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

const (
	// agentsAtOnce is how many agents are asked at the same time.
	agentsAtOnce = 32
	// failingAtOnce is how many failing agents are asked again at a time, in turns: with many nodes, one broken path makes all agents fail.
	// As soon as one agent stops failing, all others are asked.
	failingAtOnce = 2
	// silentEvery is how often an agent that does not answer is asked again.
	silentEvery = time.Second
	// statusFresh is how old an agent's status may be for a confirmation: its readiness is watched, and is nearly the same.
	statusFresh = 30 * time.Second
)

// agents reads the answers of Cilium's agents. An agent is asked for its status once it is Ready, and for the nodes it reaches once all
// agents are Ready: before, it cannot reach those that are missing. A good answer is not asked for again until all other conditions hold.
type agents struct {
	kube  *Kube
	spec  *gate.Spec
	store *store[gate.Cluster]

	mu      sync.Mutex
	reports map[string]*report // by node
	askAll  bool               // an agent has stopped failing: ask all others
}

// report is the state of the questions to one agent. Its times are zero before it has answered.
type report struct {
	asking sync.Mutex // one question at a time

	pod                      kube.Pod
	healthAsked, statusAsked time.Time
	healthGood, statusGood   bool
	silent                   bool // the last question was not answered
	busy                     bool
}

func newAgents(kube *Kube, spec *gate.Spec, store *store[gate.Cluster]) *agents {
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

// task is one agent and what to ask it for.
type task struct {
	node           string
	report         *report
	health, status bool
}

// due returns the agents to ask now.
func (a *agents) due() []task {
	ready := a.ready()
	a.mu.Lock()
	defer a.mu.Unlock()
	for node, r := range a.reports {
		if pod, still := ready[node]; !still || pod.Name != r.pod.Name {
			delete(a.reports, node)
			a.store.update(func(seen *gate.Cluster) {
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
	if !a.askAll {
		again = slices.DeleteFunc(again, func(t task) bool {
			return t.report.age() < pollEvery || t.report.silent && t.report.age() < silentEvery
		})
		again = again[:min(len(again), failingAtOnce)]
	}
	a.askAll = false
	due := slices.Concat(first, again)
	for _, t := range due {
		t.report.busy = true
	}
	return due
}

// age returns how long ago the agent answered.
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

// ready returns the agents that can be asked, by node.
func (a *agents) ready() map[string]kube.Pod {
	ready := map[string]kube.Pod{}
	a.store.read(func(seen *gate.Cluster) {
		for _, pod := range seen.Agents.Items {
			if pod.Ready && !pod.Deleting {
				ready[pod.Node] = pod
			}
		}
	})
	return ready
}

// confirm asks every agent whose answer is not fresh.
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
		status := asked(ctx, a.first(&t.report.statusAsked), func() gate.CiliumStatus { return a.kube.ciliumStatus(ctx, t.report.pod) },
			func(status gate.CiliumStatus) bool { return status.Err != "" })
		a.note(ctx, t, status.Err != "", func(seen *gate.Cluster) {
			put(&seen.CiliumStatus, t.node, status)
		}, &t.report.statusAsked, &t.report.statusGood, status.Err == "" && len(status.Problems) == 0)
	}
	if t.health {
		reach := asked(ctx, a.first(&t.report.healthAsked),
			func() gate.CiliumHealth { return a.kube.ciliumHealth(ctx, t.report.pod, a.ready()) },
			func(reach gate.CiliumHealth) bool { return reach.Err != "" })
		a.note(ctx, t, reach.Err != "", func(seen *gate.Cluster) {
			put(&seen.CiliumHealth, t.node, reach)
		}, &t.report.healthAsked, &t.report.healthGood, reach.Healthy() && a.knowsAll(reach))
	}
}

// first reports whether an agent was never asked.
func (a *agents) first(asked *time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return asked.IsZero()
}

// knowsAll reports whether an agent knows every declared node.
func (a *agents) knowsAll(reach gate.CiliumHealth) bool {
	return !slices.ContainsFunc(a.spec.Nodes, func(node gate.Machine) bool {
		_, known := reach.Peers[node.Name]
		return !known
	})
}

// note stores an answer, unless its pod was replaced in the meantime.
func (a *agents) note(ctx context.Context, t task, silent bool, store func(*gate.Cluster), asked *time.Time, was *bool, good bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || a.reports[t.node] != t.report {
		return
	}
	a.askAll = a.askAll || good && !*was && !asked.IsZero()
	*asked, *was, t.report.silent = time.Now(), good, silent
	a.store.update(store)
}

func put[T any](m *map[string]T, key string, value T) {
	if *m == nil {
		*m = map[string]T{}
	}
	(*m)[key] = value
}
