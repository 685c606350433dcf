package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Its Node is Ready before: Cilium writes its CNI configuration before its agent is ready, or Talos has kept it.
func TestTake_AWorkerIsBackOnceItsCiliumAgentIsReady(t *testing.T) {
	const agentTime = 80 * time.Second
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e := f.engine(t, nodes)
		ready := time.Time{}
		first := f.change(nodes, "worker-1")
		reboot := first.Act
		first.Act = func(ctx context.Context) error {
			agent := func(missing bool) {
				f.with(func() {
					at := f.nodes["worker-1"]
					at.NoAgent = missing
					f.nodes["worker-1"] = at
				})
			}
			agent(true)
			time.AfterFunc(agentTime, func() { agent(false); ready = time.Now() })
			return reboot(ctx)
		}
		require.NoError(t, e.Take(t.Context(), first))
		require.False(t, ready.IsZero(), "it is back before")
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "worker-2")))
		assert.Equal(t, []string{"web-worker-1", "web-worker-2"}, f.ended)
	})
}

// It will take pods soon, so those of another node are evicted, and their budgets kept.
func TestTake_AWorkerWithoutAgentCountsAsOutOfServiceAndStillAsOneThatTakesPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.nodes["worker-1"] = KubeNode{Ready: true, NoAgent: true, Boot: "1"}
		e := f.engine(t, nodes)
		err := e.Take(t.Context(), f.change(nodes, "worker-2"))
		require.ErrorContains(t, err, "worker-1: its Cilium agent is not Ready (maxUnavailable is 1)")
		e = f.engine(t, nodes)
		e.MaxUnavailable = "2"
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "worker-2")))
		assert.Equal(t, []string{"web-worker-2"}, f.ended)
	})
}
