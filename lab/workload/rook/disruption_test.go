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
	}{
		{what: "all is well", seen: osdsSeen{clean: true}},
		{what: "an OSD crashes", seen: osdsSeen{down: []string{"w1"}, ids: []string{"0"}}, drained: "w1"},
		{"another host is drained, which is the more urgent", osdsSeen{down: []string{"w1", "w2"}, drained: []string{"w2"}}, "w2", nil},
		{what: "its OSD is back, and misses copies", seen: osdsSeen{}, drained: "w2"},
		{what: "it has them", seen: osdsSeen{clean: true}},
		{what: "Ceph has not noticed a drain", seen: osdsSeen{clean: true, down: []string{"w1"}, drained: []string{"w1"}, ids: []string{"0"}}},
		{"the copies are elsewhere now", osdsSeen{clean: true, down: []string{"w1"}, drained: []string{"w1"}, ids: []string{"0"}}, "", []string{"0"}},
	} {
		excluded := step.seen.next(state, now)
		assert.Equal(t, step.drained, state[draining], step.what)
		assert.Equal(t, step.excluded, excluded, step.what)
		now = now.Add(drainDistrust)
	}
}
