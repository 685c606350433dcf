package observe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// agentRig asks Cilium's agents, whose answers a test gives.
type agentRig struct {
	*Gate

	status *inquiry[gate.Cluster, gate.CiliumStatus]
	reach  *inquiry[gate.Cluster, gate.CiliumHealth]
}

// newAgentRig returns agents on n nodes, all Ready but those that are named.
func newAgentRig(n int, notReady ...string) *agentRig {
	spec := &gate.Spec{Cilium: &gate.Cilium{}}
	a := &agentRig{Gate: NewGate(spec, nil, nil)}
	a.status, a.reach = a.agentStatus(nil), a.agentHealth(nil)
	a.update(func(c *gate.Cluster) {
		for i := range n {
			name := fmt.Sprintf("n%d", i)
			spec.Nodes = append(spec.Nodes, gate.Machine{Name: name})
			pod := kube.Pod{Name: "cilium-" + name, Node: name, Ready: !slices.Contains(notReady, name)}
			c.Agents.Items = append(c.Agents.Items, pod)
		}
	})
	return a
}

// healthy is the answer of an agent that reaches all of n nodes.
func healthy(n int) gate.CiliumHealth {
	answer := gate.CiliumHealth{Asked: true, Peers: map[string]gate.CiliumPeer{}}
	for i := range n {
		answer.Peers[fmt.Sprintf("n%d", i)] = gate.CiliumPeer{}
	}
	return answer
}

// unhealthy is the answer of an agent that does not reach a node.
var unhealthy = gate.CiliumHealth{Asked: true, Peers: map[string]gate.CiliumPeer{"n0": {Host: "timed out"}}}

// answer notes an answer, as if it had come a while ago.
func answer[S, A any](t *testing.T, i *inquiry[S, A], target *inquired, answer A, age time.Duration) {
	i.note(t.Context(), target, answer)
	target.at = time.Now().Add(-age)
}

func TestAgents_AreAskedForTheirReachOnlyOnceAllAreReady(t *testing.T) {
	a := newAgentRig(3, "n1")
	due := a.status.due()
	assert.Len(t, due, 2)
	for _, target := range due {
		answer(t, a.status, target, gate.CiliumStatus{Asked: true}, time.Minute)
	}
	assert.Empty(t, a.status.due(), "their status is good")
	assert.Empty(t, a.reach.due(), "what they say of n1 is known")

	a.update(func(c *gate.Cluster) { c.Agents.Items[1].Ready = true })
	assert.Len(t, a.reach.due(), 3)
	due = a.status.due()
	assert.Len(t, due, 1)
	assert.Equal(t, "n1", due[0].name)
}

func TestAgents_ThatFailAreAskedAFewAtATimeInTurns(t *testing.T) {
	a := newAgentRig(50)
	for _, target := range a.reach.due() {
		answer(t, a.reach, target, unhealthy, time.Minute)
	}
	turns := map[string]bool{}
	for range 25 {
		due := a.reach.due()
		assert.LessOrEqual(t, len(due), failingAtOnce)
		for _, target := range due {
			assert.False(t, turns[target.name], "%s is asked again before all others were", target.name)
			turns[target.name] = true
			answer(t, a.reach, target, unhealthy, time.Second)
		}
	}
	assert.Len(t, turns, 50)
}

func TestAgents_AreAllAskedOnceOneHasStoppedFailing(t *testing.T) {
	a := newAgentRig(50)
	for _, target := range a.reach.due() {
		answer(t, a.reach, target, unhealthy, time.Minute)
	}
	answer(t, a.reach, a.reach.due()[0], healthy(50), 0)
	assert.Greater(t, len(a.reach.due()), 40)
}

// With many nodes, the good answers to the first questions come one after the other.
func TestAgents_ThatFailAreNotAllAskedAfterEachGoodFirstAnswer(t *testing.T) {
	a := newAgentRig(50)
	due := a.reach.due()
	for _, target := range due[1:] {
		answer(t, a.reach, target, unhealthy, time.Minute)
	}
	answer(t, a.reach, due[0], healthy(50), 0)
	assert.Len(t, a.reach.due(), failingAtOnce)
}

func TestAgents_ThatWereReplacedAreForgottenWithTheirAnswers(t *testing.T) {
	a := newAgentRig(2)
	for _, target := range a.status.due() {
		answer(t, a.status, target, gate.CiliumStatus{Asked: true}, time.Minute)
	}
	old := a.status.states["n0"]
	a.update(func(c *gate.Cluster) { c.Agents.Items[0].Name = "cilium-new" })
	assert.Len(t, a.status.due(), 1)
	a.read(func(c *gate.Cluster) { assert.NotContains(t, c.CiliumStatus, "n0") })
	answer(t, a.status, old, gate.CiliumStatus{Asked: true}, 0)
	a.read(func(c *gate.Cluster) { assert.NotContains(t, c.CiliumStatus, "n0", "the late answer of the old pod") })
}

func TestAgents_ThatDoNotAnswerAreAskedLessOften(t *testing.T) {
	a := newAgentRig(1)
	answer(t, a.status, a.status.due()[0], gate.CiliumStatus{Asked: true, Err: "timed out"}, pollEvery+100*time.Millisecond)
	assert.Empty(t, a.status.due())
	a.status.states["n0"].at = time.Now().Add(-silentEvery - 100*time.Millisecond)
	assert.Len(t, a.status.due(), 1)
}
