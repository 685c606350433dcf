package observe

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// agentsAtOnce is how many agents, or other pods, are asked at the same time.
	agentsAtOnce = 32
	// failingAtOnce is how many failing targets are asked again at a time, in turns: with many nodes, one broken path makes all agents fail.
	// As soon as one target stops failing, all others are asked.
	failingAtOnce = 2
	// silentEvery is how often a target that does not answer is asked again.
	silentEvery = time.Second
)

// asker asks many targets of one kind, and again for a confirmation.
type asker interface {
	watch(ctx context.Context)
	confirm(ctx context.Context)
}

// askers are what an observer asks for, because it cannot be watched.
type askers []asker

// Confirm asks again for what cannot be watched, unless the answer is fresh, and returns when the answers are stored.
func (a askers) Confirm(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, one := range a {
		running.Go(func() { one.confirm(ctx) })
	}
}

// inquiry asks many targets of one kind, such as pods, for what cannot be watched: each target once it exists, and again until its answer
// is good. A good answer is asked for again only for a confirmation. S is what the store holds, A is an answer.
type inquiry[S, A any] struct {
	store   *store[S]
	answers func(*S) *map[string]A // the place of the answers in the store
	// targets are the names of those to ask. The value is the target's pod: if another pod takes its place, the answer is forgotten. For a
	// target that is no pod the value is "".
	targets func(*S) map[string]string
	ask     func(ctx context.Context, name, pod string) A
	silent  func(A) bool                    // the target did not answer
	good    func(seen *S, name string) bool // the target need not be asked now
	again   time.Duration                   // the shortest time between two questions to the same target
	fresh   time.Duration                   // how old an answer may be for a confirmation
	slots   chan struct{}                   // limits how many are asked at the same time; inquiries may share it

	mu     sync.Mutex
	states map[string]*inquired
	askAll bool // a target has stopped failing: ask all others
}

// inquired is the state of the questions to one target.
type inquired struct {
	asking sync.Mutex // one question at a time

	name, pod string
	busy      bool
	silent    bool      // the last question was not answered
	at        time.Time // of the last answer; zero before
}

func (i *inquiry[S, A]) watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(pollEvery / 2)
	defer ticker.Stop()
	for {
		for _, target := range i.due() {
			running.Go(func() { i.askOne(ctx, target) })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// due returns the targets to ask now: new targets, and of the failing ones a few at a time, the oldest answer first.
func (i *inquiry[S, A]) due() []*inquired {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.meet()
	var due, failing []*inquired
	i.store.read(func(seen *S) {
		for name, target := range i.states {
			switch {
			case target.busy || i.good(seen, name):
			case target.at.IsZero():
				due = append(due, target)
			default:
				failing = append(failing, target)
			}
		}
	})
	if !i.askAll {
		failing = slices.DeleteFunc(failing, func(target *inquired) bool {
			age := time.Since(target.at)
			return age < i.again || target.silent && age < silentEvery
		})
		slices.SortFunc(failing, func(a, b *inquired) int { return a.at.Compare(b.at) })
		failing = failing[:min(len(failing), failingAtOnce)]
	}
	i.askAll = false
	due = append(due, failing...)
	for _, target := range due {
		target.busy = true
	}
	return due
}

// meet adds new targets, and forgets targets that do not exist any more, with their answers.
func (i *inquiry[S, A]) meet() {
	var pods map[string]string
	i.store.read(func(seen *S) { pods = i.targets(seen) })
	for name, target := range i.states {
		if pod, exists := pods[name]; !exists || pod != target.pod {
			delete(i.states, name)
			i.store.update(func(seen *S) { delete(*i.answers(seen), name) })
		}
	}
	for name, pod := range pods {
		if i.states[name] == nil {
			put(&i.states, name, &inquired{name: name, pod: pod})
		}
	}
}

// askOne asks a target and stores the answer, once a slot is free.
func (i *inquiry[S, A]) askOne(ctx context.Context, target *inquired) {
	select {
	case i.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-i.slots }()
	target.asking.Lock()
	defer target.asking.Unlock()
	i.mu.Lock()
	first := target.at.IsZero()
	i.mu.Unlock()
	answer := asked(ctx, first, func() A { return i.ask(ctx, target.name, target.pod) }, i.silent)
	i.note(ctx, target, answer)
}

// note stores an answer, unless its target does not exist any more, or ctx has ended: then the answer may be incomplete.
func (i *inquiry[S, A]) note(ctx context.Context, target *inquired, answer A) {
	i.mu.Lock()
	defer i.mu.Unlock()
	target.busy = false
	if ctx.Err() != nil || i.states[target.name] != target {
		return
	}
	i.store.update(func(seen *S) {
		failed := !target.at.IsZero() && !i.good(seen, target.name)
		put(i.answers(seen), target.name, answer)
		i.askAll = i.askAll || failed && i.good(seen, target.name)
	})
	target.at, target.silent = time.Now(), i.silent(answer)
}

// confirm asks every target whose answer is not fresh, and returns when the answers are stored.
func (i *inquiry[S, A]) confirm(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, target := range i.states {
		if time.Since(target.at) > i.fresh {
			running.Go(func() { i.askOne(ctx, target) })
		}
	}
}
