package rook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The order of a drain, as in pkg/operator/ceph/disruption/clusterdisruption/osd.go of Rook.
func TestBudgets_LetOneHostGoUntilAllIsCleanAgain(t *testing.T) {
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	state := map[string]string{}
	for _, step := range []struct {
		what     string
		seen     osdsSeen
		drained  string
		excluded []string
		noout    string
	}{
		{what: "all is well", seen: osdsSeen{clean: true}},
		{what: "an OSD crashes", seen: osdsSeen{down: []string{"w1"}, ids: []string{"0"}}, drained: "w1"},
		{what: "another host is drained, which is the more urgent", seen: osdsSeen{down: []string{"w1", "w2"}, drained: []string{"w2"}},
			drained: "w2", noout: "w2"},
		{what: "its OSD is back, and misses copies", seen: osdsSeen{}, drained: "w2", noout: "w2"},
		{what: "it has them", seen: osdsSeen{clean: true}},
		{what: "Ceph has not noticed a drain", seen: osdsSeen{clean: true, down: []string{"w1"}, drained: []string{"w1"}, ids: []string{"0"}}},
		{what: "the copies are elsewhere now", seen: osdsSeen{clean: true, down: []string{"w1"}, drained: []string{"w1"}, ids: []string{"0"}},
			excluded: []string{"0"}},
	} {
		excluded := step.seen.next(state, now)
		assert.Equal(t, step.drained, state[draining], step.what)
		assert.Equal(t, step.excluded, excluded, step.what)
		assert.Equal(t, step.noout, noout(state, now), step.what)
		now = now.Add(drainDistrust)
	}
}

func TestNoout_EndsHalfAnHourAfterTheDrainOfAHostThatDoesNotComeBack(t *testing.T) {
	now, state := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC), map[string]string{}
	gone := osdsSeen{down: []string{"w1"}, drained: []string{"w1"}}
	for minute, want := range map[int]string{0: "w1", 29: "w1", 30: ""} {
		clear(state)
		gone.next(state, now)
		noout(state, now)
		assert.Equal(t, want, noout(state, now.Add(time.Duration(minute)*time.Minute)), minute)
	}
}
