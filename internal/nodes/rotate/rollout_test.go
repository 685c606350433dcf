package rotate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// rolling is a fake in which the pods of the DaemonSet are replaced one after the other. It models their numbers, and one of them.
type rolling struct {
	*pods
	all   int32         // pods of the DaemonSet
	stops int32         // how many are replaced at most
	takes time.Duration // until one is replaced

	began time.Time
}

func (r *rolling) Restart(ctx context.Context, workload Workload, since time.Time) error {
	if workload.Kind != "DaemonSet" {
		return r.pods.Restart(ctx, workload, since)
	}
	if r.began.IsZero() {
		r.began = time.Now()
	}
	return nil
}

func (r *rolling) Rollout(ctx context.Context, workload Workload) (rollout, error) {
	if workload.Kind != "DaemonSet" || r.began.IsZero() {
		return r.pods.Rollout(ctx, workload)
	}
	updated := min(r.stops, int32(time.Since(r.began)/r.takes))
	now := of(corev1.PodTemplateSpec{}, 1, 1, counts{wanted: r.all, updated: updated, all: r.all, available: r.all - 1}).rollout
	now.restarted = r.roots["default"].Since
	if updated == r.all {
		r.add("default", "c", workload, time.Now())
		now.available++
	}
	return now, nil
}

func TestRun_OfKubernetesWaitsForARolloutThatGoesOnHoweverManyPodsItHas(t *testing.T) {
	s := spec(t)
	r := &rolling{pods: withPods(t, s), all: 100, stops: 100, takes: 20 * time.Second}
	report, _, err := rotated(t, s, r)
	require.NoError(t, err)
	assert.Contains(t, report.Restarted, "DaemonSet default/agent")
}

func TestRun_OfKubernetesGivesUpOnARolloutThatHasStopped(t *testing.T) {
	s := spec(t)
	r := &rolling{pods: withPods(t, s), all: 100, stops: 90, takes: 20 * time.Second}
	synctest.Test(t, func(t *testing.T) {
		_, err := run(t.Context(), s, r, t.Output())
		require.ErrorContains(t, err, "DaemonSet default/agent: gave up after 15m0s without progress (last: 90 of 100 pods are new ones)")
		assert.InDelta(t, 90*20+15*60, time.Since(r.began).Seconds(), 2)
	})
}

func TestSpec_OfKubernetesGivesEachNodeTimeForItsPods(t *testing.T) {
	longest := func(of Subject, nodes int) time.Duration {
		return (&Spec{Of: of, Target: turn.Target{Nodes: make([]turn.Node, nodes)}}).Longest()
	}
	ten := 10 * 10 * 20 * time.Second // of ten DaemonSets on ten nodes
	assert.GreaterOrEqual(t, longest(Kubernetes, 110)-longest(Kubernetes, 100), ten)
	assert.Less(t, longest(Talos, 110)-longest(Talos, 100), ten)
}
