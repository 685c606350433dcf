package turn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var three = Turn{Node: "10.25.11.12", Others: []string{"10.25.11.11", "10.25.11.13"}}

var (
	fine      = observation{stage: runtime.MachineStageRunning, etcd: running, healthy: true}
	rebooting = observation{stage: runtime.MachineStageRebooting, etcd: running, healthy: true}
	silent    = observation{err: status.Error(codes.Unavailable, "connection refused")}
	starting  = observation{stage: runtime.MachineStageRunning, etcd: running}
	fresh     = observation{stage: runtime.MachineStageRunning, etcd: "Preparing"}
)

// cluster holds the states of control planes; one without a state is healthy. The method set changes a state.
type cluster struct {
	mu   sync.Mutex
	seen map[string]observation
}

func (c *cluster) set(node string, s observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]observation{}
	}
	c.seen[node] = s
}

func (c *cluster) look(_ context.Context, node string) observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.seen[node]; ok {
		return s
	}
	return fine
}

func TestTurn_ComesOnceTheOthersHaveBeenHealthyLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, three.await(t.Context(), (&cluster{}).look))
		assert.Equal(t, StableFor, time.Since(start))
	})
}

func TestTurn_WaitsForTheRebootOfThePreviousControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, start := &cluster{}, time.Now()
		after := func(d time.Duration, s observation) { time.AfterFunc(d, func() { c.set("10.25.11.11", s) }) }
		after(1500*time.Millisecond, rebooting) // the first look found it healthy
		after(10*time.Second, silent)
		after(40*time.Second, starting)
		after(50*time.Second, fine)
		require.NoError(t, three.await(t.Context(), c.look))
		assert.GreaterOrEqual(t, time.Since(start), 50*time.Second+StableFor)
	})
}

func TestTurn_DoesNotComeWhileAnotherIsUnhealthy(t *testing.T) {
	for want, unhealthy := range map[string]observation{
		"10.25.11.13: no answer from the Talos API (connection refused)": silent,
		"10.25.11.13: the machine is rebooting":                          rebooting,
		"10.25.11.13: etcd is not healthy":                               starting,
		"10.25.11.13: etcd is Preparing":                                 fresh,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, start := &cluster{}, time.Now()
			c.set("10.25.11.13", unhealthy)
			err := three.await(t.Context(), c.look)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "10.25.11.12 is not changed while another control plane is not healthy")
			assert.Equal(t, DefaultTimeout, time.Since(start))
		})
	}
}

func TestTurn_OfANodeWithoutEtcdComesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, start := &cluster{}, time.Now()
		c.set("10.25.11.12", fresh) // not bootstrapped yet, or unhealthy itself
		c.set("10.25.11.11", silent)
		require.NoError(t, three.await(t.Context(), c.look))
		assert.Zero(t, time.Since(start))
	})
}

func TestTurn_WithoutOthersSendsNoRequest(t *testing.T) {
	require.NoError(t, Turn{Node: "127.0.0.1:1"}.Await(t.Context()))
}

func TestTurn_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &cluster{}
		c.set("10.25.11.13", silent)
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		require.ErrorIs(t, three.await(ctx, c.look), context.Canceled)
		assert.Equal(t, time.Minute, time.Since(start))
	})
}
