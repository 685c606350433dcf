package probe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health/own"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

const queues = "apis/example.com/v1/queues"

var ownCheck = cluster.Check{
	Name: "every queue is ready", Objects: cluster.CheckedObjects{APIVersion: "example.com/v1", Kind: "Queue", Selector: "team=data"},
	Expression: "object.status.ready >= 2", Message: "ask in #queues",
}

func putQueue(t *testing.T, kube *fakecluster.Kube, ready string) {
	t.Helper()
	kube.Put(t, queues, "{apiVersion: example.com/v1, kind: Queue, metadata: {name: a, namespace: queues, labels: {team: data}}, "+
		"status: {ready: "+ready+"}}")
}

func TestGate_IsClosedByACheckOfTheStackFileInItsOwnWords(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.spec.Checks = []cluster.Check{ownCheck}
	code, report, progress := r.look(t)
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, problem(t, report, "Queue with team=data", "every queue is ready").Reason, "does not exist yet")

	r.kube.Discovers("apis/example.com/v1", map[string]string{"queues": "Queue"})
	putQueue(t, r.kube, "1")
	code, report, progress = r.look(t)
	assert.Equal(t, exitUnhealthy, code, progress)
	assert.Equal(t, "ask in #queues", problem(t, report, "Queue queues/a", "every queue is ready").Reason)
}

func TestChecks_OpenOnceTheObjectsThatFluxAppliesAreThereAndWell(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	spec := encode(t, &own.Spec{
		Target: targetOf(kube, 20*time.Second),
		Checks: []cluster.Check{ownCheck},
	})
	code, report, progress := execute(t, spec, "checks", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	assert.Equal(t, "does not exist", problem(t, report, "Queue with team=data", "every queue is ready").Reason)

	waiting := &until{text: "does not exist"}
	waiting.then = func() {
		kube.Discovers("apis/example.com/v1", map[string]string{"queues": "Queue"})
		putQueue(t, kube, "1")
		waiting.text, waiting.then = "ask in #queues", func() { putQueue(t, kube, "2") }
	}
	code, report, progress = executeUntil(t, waiting, spec, "checks")
	assert.Equal(t, exitOpen, code, progress)
	assert.Empty(t, report.Problems)
}
