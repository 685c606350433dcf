package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// inquiry asks many of one kind, such as pods, for what cannot be watched: each as soon as it is there, and again until its answer is good.
// A good answer is asked for again only for a confirmation.
type inquiry struct {
	targets func() []string                          // whom to ask; called often
	good    func(target string) bool                 // whether the last answer is good
	ask     func(ctx context.Context, target string) // asks and stores the answer
	again   time.Duration                            // how long after an answer the same target is asked again

	mu     sync.Mutex
	states map[string]*inquired
	goods  int // number of good answers when it was looked at last
}

// inquired is the state of the questions to one target.
type inquired struct {
	asking sync.Mutex // one question at a time
	busy   bool
	at     time.Time // of the last answer; zero before
}

func (i *inquiry) watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, agentsAtOnce)
	ticker := time.NewTicker(pollEvery / 2)
	defer ticker.Stop()
	for {
		for _, target := range i.due() {
			running.Go(func() {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-slots }()
				i.askOne(ctx, target)
			})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// due returns the targets to ask now: those that were never asked, and of those that fail a few at a time, the oldest answer first. If
// more answers are good than before, all that fail are asked: what was repaired is likely repaired for them, too.
func (i *inquiry) due() []string {
	targets := i.targets()
	goods := 0
	var failing []string
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.states == nil {
		i.states = map[string]*inquired{}
	}
	var due []string
	for _, target := range targets {
		state := i.states[target]
		switch {
		case state == nil:
			i.states[target] = &inquired{}
			due = append(due, target)
		case state.at.IsZero() || state.busy: // the first answer is on its way, or another one
		case i.good(target):
			goods++
		default:
			failing = append(failing, target)
		}
	}
	if goods <= i.goods {
		failing = slices.DeleteFunc(failing, func(target string) bool { return time.Since(i.states[target].at) < i.again })
		slices.SortFunc(failing, func(a, b string) int { return cmp.Compare(i.states[a].at.UnixNano(), i.states[b].at.UnixNano()) })
		failing = failing[:min(len(failing), failingAtOnce)]
	}
	i.goods = goods
	due = append(due, failing...)
	for _, target := range due {
		i.states[target].busy = true
	}
	return due
}

func (i *inquiry) askOne(ctx context.Context, target string) {
	i.mu.Lock()
	state := i.states[target]
	i.mu.Unlock()
	state.asking.Lock()
	defer state.asking.Unlock()
	i.ask(ctx, target)
	i.mu.Lock()
	defer i.mu.Unlock()
	state.at, state.busy = time.Now(), false
}

// confirm asks every target whose answer is not fresh, and returns when the answers are stored.
func (i *inquiry) confirm(ctx context.Context) {
	var old []string
	for _, target := range i.targets() {
		i.mu.Lock()
		if state := i.states[target]; state != nil && time.Since(state.at) > fresh {
			old = append(old, target)
		}
		i.mu.Unlock()
	}
	limited(ctx, agentsAtOnce, old, func(target string) { i.askOne(ctx, target) })
}
