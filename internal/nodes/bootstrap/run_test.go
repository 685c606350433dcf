package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/probe"
)

var errDown = status.Error(codes.Unavailable, "connection refused")

// fakeCluster is a set of control planes without etcd. It models the bootstrap call and when etcd turns healthy; it does
// not model members that join. The zero value, with its nodes named in states, is ready for use.
type fakeCluster struct {
	mu         sync.Mutex
	states     map[netip.Addr]etcd
	down       map[netip.Addr]time.Time // nodes that answer only from then on
	data       map[netip.Addr]bool      // nodes with etcd data
	bootstraps []netip.Addr             // calls that were accepted, in order
	uploads    [][]byte                 // snapshots that were uploaded, in order

	damaged bool // a recovery fails

	// OnBootstrap, if non-nil, runs after a node has accepted the call; its error is what the caller gets instead of
	// the answer, as when a connection breaks.
	OnBootstrap func(node netip.Addr) error
}

func newCluster() *fakeCluster {
	c := &fakeCluster{states: map[netip.Addr]etcd{}, down: map[netip.Addr]time.Time{}, data: map[netip.Addr]bool{}}
	for _, node := range threeNodes {
		c.states[node] = etcd{state: "Preparing"}
	}
	return c
}

func (c *fakeCluster) etcd(_ context.Context, node netip.Addr) (etcd, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.down[node]) {
		return etcd{}, errDown
	}
	return c.states[node], nil
}

func (c *fakeCluster) upload(_ context.Context, _ netip.Addr, from io.Reader) error {
	data, err := io.ReadAll(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uploads = append(c.uploads, data)
	return err
}

// bootstrap models a recovery like any bootstrap, but that it fails without an upload, as a service, after the call.
func (c *fakeCluster) bootstrap(_ context.Context, node netip.Addr, recovers bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.down[node]) {
		return errDown
	}
	if c.data[node] {
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	c.bootstraps = append(c.bootstraps, node)
	if recovers && (len(c.uploads) == 0 || c.damaged) {
		c.states[node] = etcd{state: "Failed", message: "error verifying snapshot: invalid database"}
		return nil
	}
	c.data[node] = true
	c.states[node] = etcd{state: "Running"}
	time.AfterFunc(3*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.states[node] = etcd{state: "Running", healthy: true}
	})
	if c.OnBootstrap != nil {
		return c.OnBootstrap(node)
	}
	return nil
}

var threeNodes = []netip.Addr{
	netip.MustParseAddr("10.25.11.11"), netip.MustParseAddr("10.25.11.12"), netip.MustParseAddr("10.25.11.13"),
}

func threeNodeSpec() Spec {
	return Spec{Node: threeNodes[0], ControlPlanes: threeNodes, Timeout: probe.Duration(10 * time.Minute)}
}

func TestRun_BootstrapsTheFirstNodeOnceAndWaitsForItsHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, start := newCluster(), time.Now()
		result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: threeNodes[0], Bootstrapped: true}, result)
		assert.Equal(t, []netip.Addr{threeNodes[0]}, c.bootstraps)
		assert.GreaterOrEqual(t, time.Since(start), 3*time.Second)
		assert.Less(t, time.Since(start), 5*time.Second)
	})
}

func TestRun_FindsTheEtcdThatItStartedAfterALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.OnBootstrap = func(netip.Addr) error { return status.Error(codes.Unavailable, "broken pipe") }
		result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, threeNodes[0], result.Node)
		assert.Len(t, c.bootstraps, 1)
	})
}

func TestRun_CountsAlreadyExistsAsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.data[threeNodes[0]] = true // accepted, and the service has not started yet
		time.AfterFunc(10*time.Second, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.states[threeNodes[0]] = etcd{state: "Running", healthy: true}
		})
		result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: threeNodes[0]}, result)
		assert.Empty(t, c.bootstraps)
	})
}

func TestRun_OnABootstrappedClusterDoesNothing(t *testing.T) {
	c := newCluster()
	c.states[threeNodes[0]] = etcd{state: "Running", healthy: true}
	result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: threeNodes[0]}, result)
	assert.Empty(t, c.bootstraps)
}

func TestRun_NeverStartsASecondClusterWhileAnotherNodeHasEtcd(t *testing.T) {
	c := newCluster() // the first node was replaced: no data
	c.states[threeNodes[1]] = etcd{state: "Running", healthy: true}
	result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, threeNodes[1], result.Node)
	assert.Empty(t, c.bootstraps)
}

// The first node was replaced while the others reboot.
func TestRun_NeverStartsASecondClusterBesideNodesThatBoot(t *testing.T) {
	for says, booting := range map[string]etcd{
		"10.25.11.12: has etcd data, and its etcd is Preparing": {state: "Preparing", data: true},
		"10.25.11.12: its etcd is Waiting":                      {state: "Waiting"},
		"10.25.11.12: its etcd is Failed":                       {state: "Failed"},
		"10.25.11.12: its etcd is Waiting (Error running X)":    {state: "Waiting", message: "Error running X"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			c.states[threeNodes[1]] = booting
			time.AfterFunc(time.Minute, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.states[threeNodes[1]] = etcd{state: "Running", healthy: true}
			})
			var progress bytes.Buffer
			result, err := run(t.Context(), threeNodeSpec(), c, &progress)
			require.NoError(t, err)
			assert.Equal(t, Report{Node: threeNodes[1]}, result)
			assert.Empty(t, c.bootstraps)
			assert.Contains(t, progress.String(), says)
		})
	}
}

func TestRun_WaitsForAnEtcdThatIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.states[threeNodes[1]] = etcd{state: "Running"}
		_, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.ErrorContains(t, err, "10.25.11.12: etcd runs, not healthy yet")
		assert.Empty(t, c.bootstraps)
	})
}

func TestRun_WaitsUntilEveryControlPlaneHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down[threeNodes[2]] = time.Now().Add(time.Minute)
		var progress bytes.Buffer
		start := time.Now()
		_, err := run(t.Context(), threeNodeSpec(), c, &progress)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), time.Minute)
		assert.Equal(t, 1, strings.Count(progress.String(), "10.25.11.13: no answer from the Talos API (connection refused)"),
			"it says a thing once: %s", progress.String())
	})
}

func TestRun_EndsAtItsTimeoutAndNamesTheSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down[threeNodes[2]] = time.Now().Add(24 * time.Hour)
		start := time.Now()
		_, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.ErrorContains(t, err, "healthy etcd: gave up after 10m0s (last: ")
		require.ErrorContains(t, err, "10.25.11.13: no answer")
		assert.Equal(t, 10*time.Minute, time.Since(start))
		assert.Empty(t, c.bootstraps)
	})
}

func TestRun_TriesAgainAfterTemporaryErrorsOnly(t *testing.T) {
	for code, attempts := range map[codes.Code]int{codes.FailedPrecondition: 2, codes.Unavailable: 2, codes.InvalidArgument: 1,
		codes.PermissionDenied: 1} {
		t.Run(code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, refused := newCluster(), &refusing{times: 1, err: status.Error(code, "no")}
				refused.fakeCluster = c
				_, err := run(t.Context(), threeNodeSpec(), refused, &bytes.Buffer{})
				assert.Equal(t, attempts == 1, err != nil)
				assert.Equal(t, attempts, refused.calls)
			})
		})
	}
}

// refusing answers the first calls to bootstrap with an error, without having done anything.
type refusing struct {
	*fakeCluster
	calls, times int
	err          error
}

func (r *refusing) bootstrap(ctx context.Context, node netip.Addr, recovers bool) error {
	r.calls++
	if r.calls <= r.times {
		return r.err
	}
	return r.fakeCluster.bootstrap(ctx, node, recovers)
}

func TestRun_EndsWhenItIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down[threeNodes[0]] = time.Now().Add(24 * time.Hour)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errors.New("interrupted")) })
		_, err := run(ctx, threeNodeSpec(), c, &bytes.Buffer{})
		require.ErrorContains(t, err, "interrupted")
	})
}

// After an installation that has failed, the image halts with the machine's address and without an API.
func TestRun_NamesTheControlPlanesThatRefuseConnections(t *testing.T) {
	waits := errors.New("gave up")
	err := withClosed(waits, threeNodes, func(node netip.Addr) bool { return node == threeNodes[1] })
	require.ErrorIs(t, err, waits)
	assert.Equal(t, "gave up; 10.25.11.12: it has its address, and refuses connections to Talos's API: look at its console. "+
		"If Talos is already installed to disk there, its installation has failed", err.Error())
}
