package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// newAgentRig returns agents on n nodes, all Ready but those that are named.
func newAgentRig(n int, notReady ...string) *agents {
	spec := &gate.Spec{}
	store := newStore[gate.Cluster]()
	store.update(func(c *gate.Cluster) {
		for i := range n {
			name := fmt.Sprintf("n%d", i)
			spec.Nodes = append(spec.Nodes, gate.Machine{Name: name})
			ready := true
			for _, not := range notReady {
				ready = ready && not != name
			}
			c.Agents.Items = append(c.Agents.Items, kube.Pod{Name: "cilium-" + name, Node: name, Ready: ready})
		}
	})
	return newAgents(nil, spec, store)
}

// answered notes an answer of long ago, so that the agent may be asked again.
func answered(a *agents, t task, good bool) {
	now := time.Now().Add(-time.Minute)
	t.report.busy, t.report.statusAsked, t.report.statusGood = false, now, true
	if t.health {
		t.report.healthAsked, t.report.healthGood = now, good
	}
}

func TestAgents_AreAskedForTheirReachOnlyOnceAllAreReady(t *testing.T) {
	a := newAgentRig(3, "n1")
	due := a.due()
	assert.Len(t, due, 2)
	for _, task := range due {
		assert.True(t, task.status)
		assert.False(t, task.health)
		answered(a, task, false)
	}
	assert.Empty(t, a.due(), "their status is good, and what they say of n1 is known")

	a.store.update(func(c *gate.Cluster) { c.Agents.Items[1].Ready = true })
	due = a.due()
	assert.Len(t, due, 3)
	for _, task := range due {
		assert.True(t, task.health)
		assert.Equal(t, task.node == "n1", task.status)
	}
}

func TestAgents_ThatFailAreAskedAFewAtATimeInTurns(t *testing.T) {
	a := newAgentRig(50)
	for _, task := range a.due() {
		task.health = true
		answered(a, task, false)
	}
	turns := map[string]bool{}
	for range 25 {
		due := a.due()
		assert.LessOrEqual(t, len(due), failingAtOnce)
		for _, task := range due {
			assert.False(t, task.status)
			assert.False(t, turns[task.node], "%s is asked again before all others were", task.node)
			turns[task.node] = true
			task.report.busy, task.report.healthAsked = false, time.Now().Add(-time.Second)
		}
	}
	assert.Len(t, turns, 50)
}

func TestAgents_AreAllAskedOnceOneHasStoppedFailing(t *testing.T) {
	a := newAgentRig(50)
	for _, task := range a.due() {
		task.health = true
		answered(a, task, false)
	}
	first := a.due()[0]
	first.report.busy = false
	a.note(t.Context(), first, false, func(*gate.Cluster) {}, &first.report.healthAsked, &first.report.healthGood, true)
	assert.Greater(t, len(a.due()), 40)
}

func TestAgents_ThatWereReplacedAreForgottenWithTheirAnswers(t *testing.T) {
	a := newAgentRig(2)
	for _, task := range a.due() {
		answered(a, task, true)
		a.store.update(func(c *gate.Cluster) { put(&c.CiliumStatus, task.node, gate.CiliumStatus{Asked: true}) })
	}
	a.store.update(func(c *gate.Cluster) { c.Agents.Items[0].Name = "cilium-new" })
	due := a.due()
	assert.Len(t, due, 1)
	a.store.read(func(c *gate.Cluster) { assert.NotContains(t, c.CiliumStatus, "n0") })
}

func TestAgents_ThatDoNotAnswerAreAskedLessOften(t *testing.T) {
	a := newAgentRig(1)
	task := a.due()[0]
	answered(a, task, true)
	a.note(t.Context(), task, true, func(*gate.Cluster) {}, &task.report.statusAsked, &task.report.statusGood, false)
	task.report.statusAsked = time.Now().Add(-pollEvery - 100*time.Millisecond)
	assert.Empty(t, a.due())
	task.report.statusAsked = time.Now().Add(-silentEvery - 100*time.Millisecond)
	assert.Len(t, a.due(), 1)
}
