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

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

var errDown = status.Error(codes.Unavailable, "connection refused")

// fakeCluster is a set of control planes without etcd. It models the bootstrap call and when etcd turns healthy; it does
// not model members that join. The zero value, with its nodes named in states, is ready for use.
type fakeCluster struct {
	mu         sync.Mutex
	states     map[string]etcd      // by the node's name
	down       map[string]time.Time // nodes that answer only from then on
	bare       map[string]time.Time // nodes in maintenance mode until then
	data       map[string]bool      // nodes with etcd data
	bootstraps []string             // calls that were accepted, in order
	uploads    [][]byte             // snapshots that were uploaded, in order

	reboots []string // nodes that were rebooted, in order

	damaged bool // a recovery fails
	broken  bool // etcd fails after a reboot, too
	locked  bool // no node reboots

	// OnBootstrap, if non-nil, runs after a node has accepted the call; its error is what the caller gets instead of
	// the answer, as when a connection breaks.
	OnBootstrap func(node string) error
}

func newCluster() *fakeCluster {
	c := &fakeCluster{states: map[string]etcd{}, down: map[string]time.Time{}, data: map[string]bool{}}
	for _, node := range threeNodes {
		c.states[node.Name] = etcd{state: "Preparing"}
	}
	return c
}

func (c *fakeCluster) etcd(_ context.Context, node turn.Node) (etcd, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.bare[node.Name]) {
		return etcd{}, talosapi.ErrMaintenance
	}
	if time.Now().Before(c.down[node.Name]) {
		return etcd{}, errDown
	}
	return c.states[node.Name], nil
}

func (c *fakeCluster) upload(_ context.Context, _ turn.Node, from io.Reader) error {
	data, err := io.ReadAll(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uploads = append(c.uploads, data)
	return err
}

// reboot models that a node is away for a minute, and then awaits the bootstrap.
func (c *fakeCluster) reboot(_ context.Context, node turn.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locked {
		return status.Error(codes.FailedPrecondition, "locked")
	}
	c.reboots = append(c.reboots, node.Name)
	c.down[node.Name] = time.Now().Add(time.Minute)
	if !c.broken {
		c.states[node.Name] = etcd{state: "Preparing"}
	}
	return nil
}

// bootstrap models a recovery like any bootstrap, but that it fails without an upload, as a service, after the call.
func (c *fakeCluster) bootstrap(_ context.Context, node turn.Node, recovers bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.down[node.Name]) {
		return errDown
	}
	if c.data[node.Name] {
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	c.bootstraps = append(c.bootstraps, node.Name)
	if recovers && (len(c.uploads) == 0 || c.damaged) {
		c.states[node.Name] = etcd{state: "Failed", message: "error verifying snapshot: invalid database"}
		return nil
	}
	c.data[node.Name] = true
	c.states[node.Name] = etcd{state: "Running"}
	time.AfterFunc(3*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.states[node.Name] = etcd{state: "Running", healthy: true}
	})
	if c.OnBootstrap != nil {
		return c.OnBootstrap(node.Name)
	}
	return nil
}

const cp1, cp2, cp3 = "infra-cp-1", "infra-cp-2", "infra-cp-3"

// threeNodes have addresses at which nothing answers.
var threeNodes = []turn.Node{controlPlaneAt(cp1, "192.0.2.11"), controlPlaneAt(cp2, "192.0.2.12"), controlPlaneAt(cp3, "192.0.2.13")}

func controlPlaneAt(name, address string) turn.Node {
	return turn.Node{Name: name, Role: cluster.ControlPlane, Address: netip.MustParseAddr(address)}
}

func threeNodeSpec() Spec {
	return Spec{Target: turn.Target{Cluster: "infra", Talosconfig: "x", Nodes: threeNodes}}
}

func TestRun_BootstrapsTheFirstNodeOnceAndWaitsForItsHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, start := newCluster(), time.Now()
		result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: cp1, Bootstrapped: true}, result)
		assert.Equal(t, []string{cp1}, c.bootstraps)
		assert.GreaterOrEqual(t, time.Since(start), 3*time.Second)
		assert.Less(t, time.Since(start), 5*time.Second)
	})
}

func TestRun_AsksAControlPlaneThatIsLeftOutAndBootstrapsAnother(t *testing.T) {
	spec := threeNodeSpec()
	spec.Skip = cluster.SkippedNodes{{Name: cp1, Reason: "waits for a new disk"}}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		result, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: cp2, Bootstrapped: true}, result)
	})
	c := newCluster()
	c.states[cp1] = etcd{state: "Running", healthy: true}
	result, err := run(t.Context(), spec, c, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp1}, result)
}

func TestRun_FindsTheEtcdThatItStartedAfterALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.OnBootstrap = func(string) error { return status.Error(codes.Unavailable, "broken pipe") }
		result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, cp1, result.Node)
		assert.Len(t, c.bootstraps, 1)
	})
}

func TestRun_CountsAlreadyExistsAsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.data[cp1] = true // accepted, and the service has not started yet
		time.AfterFunc(10*time.Second, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.states[cp1] = etcd{state: "Running", healthy: true}
		})
		result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: cp1}, result)
		assert.Empty(t, c.bootstraps)
	})
}

func TestRun_OnABootstrappedClusterDoesNothing(t *testing.T) {
	c := newCluster()
	c.states[cp1] = etcd{state: "Running", healthy: true}
	result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp1}, result)
	assert.Empty(t, c.bootstraps)
}

func TestRun_NeverStartsASecondClusterWhileAnotherNodeHasEtcd(t *testing.T) {
	c := newCluster() // the first node was replaced: no data
	c.states[cp2] = etcd{state: "Running", healthy: true}
	result, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, cp2, result.Node)
	assert.Empty(t, c.bootstraps)
}

// The first node was replaced while the others reboot.
func TestRun_NeverStartsASecondClusterBesideNodesThatBoot(t *testing.T) {
	for says, booting := range map[string]etcd{
		"infra-cp-2: has etcd data, and its etcd is Preparing": {state: "Preparing", data: true},
		"infra-cp-2: its etcd is Waiting":                      {state: "Waiting"},
		"infra-cp-2: its etcd is Failed":                       {state: "Failed"},
		"infra-cp-2: its etcd is Waiting (Error running X)":    {state: "Waiting", message: "Error running X"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			c.states[cp2] = booting
			time.AfterFunc(time.Minute, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.states[cp2] = etcd{state: "Running", healthy: true}
			})
			var progress bytes.Buffer
			result, err := run(t.Context(), threeNodeSpec(), c, &progress)
			require.NoError(t, err)
			assert.Equal(t, Report{Node: cp2}, result)
			assert.Empty(t, c.bootstraps)
			assert.Contains(t, progress.String(), says)
		})
	}
}

func TestRun_WaitsForAnEtcdThatIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.states[cp2] = etcd{state: "Running"}
		_, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.ErrorContains(t, err, "infra-cp-2: etcd runs, not healthy yet")
		assert.Empty(t, c.bootstraps)
	})
}

func TestRun_WaitsUntilEveryControlPlaneHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down[cp3] = time.Now().Add(time.Minute)
		var progress bytes.Buffer
		start := time.Now()
		_, err := run(t.Context(), threeNodeSpec(), c, &progress)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), time.Minute)
		assert.Equal(t, 1, strings.Count(progress.String(), "infra-cp-3: no answer from the Talos API (connection refused)"),
			"it says a thing once: %s", progress.String())
	})
}

func TestRun_RebootsTheNodesThatHaveWaitedTooLongForTheBootstrap(t *testing.T) {
	gaveUp := etcd{state: "Failed", message: "failed to build cluster arguments: timeout"}
	for name, test := range map[string]struct {
		change  func(*fakeCluster)
		reboots []string
		fails   string
	}{
		"all":                    {func(*fakeCluster) {}, []string{cp1, cp2, cp3}, ""},
		"two":                    {func(c *fakeCluster) { c.states[cp1] = etcd{state: "Preparing"} }, []string{cp2, cp3}, ""},
		"another one has data":   {func(c *fakeCluster) { c.states[cp2] = etcd{state: "Preparing", data: true} }, nil, "has etcd data"},
		"another one is silent":  {func(c *fakeCluster) { c.down[cp2] = time.Now().Add(time.Hour) }, nil, "no answer"},
		"they do not reboot":     {func(c *fakeCluster) { c.locked = true }, nil, cp2 + " does not reboot: locked"},
		"they fail once more":    {func(c *fakeCluster) { c.broken = true }, []string{cp1, cp2, cp3}, "its etcd is Failed (failed to build"},
		"one runs, not healthy":  {func(c *fakeCluster) { c.states[cp2] = etcd{state: "Running"} }, nil, "etcd runs, not healthy yet"},
		"one has data and fails": {func(c *fakeCluster) { c.states[cp2] = etcd{state: "Failed", data: true} }, nil, "has etcd data"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				for node := range c.states {
					c.states[node] = gaveUp
				}
				test.change(c)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				report, err := run(ctx, threeNodeSpec(), c, io.Discard)
				assert.Equal(t, test.reboots, c.reboots)
				if test.fails != "" {
					require.ErrorContains(t, err, test.fails)
					assert.Empty(t, c.bootstraps)
					return
				}
				require.NoError(t, err)
				assert.True(t, report.Bootstrapped)
				assert.Equal(t, []string{cp1}, c.bootstraps)
			})
		})
	}
}

func TestRun_EndsAtItsTimeoutAndNamesTheSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down[cp3] = time.Now().Add(24 * time.Hour)
		start := time.Now()
		_, err := run(t.Context(), threeNodeSpec(), c, &bytes.Buffer{})
		require.ErrorContains(t, err, "healthy etcd: gave up after 15m0s (last: ")
		require.ErrorContains(t, err, "infra-cp-3: no answer")
		assert.Equal(t, Longest, time.Since(start))
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

func (r *refusing) bootstrap(ctx context.Context, node turn.Node, recovers bool) error {
	r.calls++
	if r.calls <= r.times {
		return r.err
	}
	return r.fakeCluster.bootstrap(ctx, node, recovers)
}

func TestRun_EndsWhenItIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down[cp1] = time.Now().Add(24 * time.Hour)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errors.New("interrupted")) })
		_, err := run(ctx, threeNodeSpec(), c, &bytes.Buffer{})
		require.ErrorContains(t, err, "interrupted")
	})
}

// After an installation that has failed, the image halts with the machine's address and without an API.
func TestRun_NamesTheControlPlanesThatRefuseConnections(t *testing.T) {
	waits := errors.New("gave up")
	err := withClosed(waits, threeNodes, func(node turn.Node) bool { return node.Name == cp2 })
	require.ErrorIs(t, err, waits)
	assert.Equal(t, "gave up; infra-cp-2: it has its address, and refuses connections to Talos's API: look at its console. "+
		"If Talos is already installed to disk there, its installation has failed; if it does not get on, it cannot pull its installer",
		err.Error())
}

// Or the machine boots from the image again. One that gets its configuration again leaves maintenance mode soon.
func TestRun_EndsSoonIfAControlPlaneStaysInMaintenanceMode(t *testing.T) {
	for name, one := range map[string]struct {
		lasts time.Duration
		skip  cluster.SkippedNodes
		fails bool
	}{
		"for ever":        {lasts: time.Hour, fails: true},
		"for a while":     {lasts: 50 * time.Second},
		"one is left out": {lasts: 5 * time.Minute, skip: cluster.SkippedNodes{{Name: cp2, Reason: "waits for a disk"}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, began := newCluster(), time.Now()
			c.bare = map[string]time.Time{cp2: began.Add(one.lasts)}
			spec := threeNodeSpec()
			spec.Skip = one.skip
			_, err := run(t.Context(), spec, c, &bytes.Buffer{})
			if !one.fails {
				require.NoError(t, err, name)
				return
			}
			require.ErrorContains(t, err, "infra-cp-2 is in maintenance mode, without a configuration", name)
			assert.Less(t, time.Since(began), 2*time.Minute)
		})
	}
}
