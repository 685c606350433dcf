package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

func TestRun_NoTwoAPIServersAreAwayWhileNewKubeletsMakeTheirPodsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Len(t, report.Kubernetes, 3*3+5)
		assert.Equal(t, 1, f.serversAway)
		assert.Zero(t, f.silent, "the API server behind the virtual IP was restarted")
		for _, node := range f.nodes[:3] {
			assert.Equal(t, 1, node.remade, "%s: the turn of its kubelet has ended before", node.Name)
		}
	})
}

// Of two members, etcd needs both: no turn would ever let one of them go.
func TestRun_TwoControlPlanesGetNewKubeletsBecauseEtcdGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.nodes, spec.Nodes = slices.Delete(f.nodes, 2, 3), slices.Delete(spec.Nodes, 2, 3)
		spec.Talos = "v1.12.6"
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Len(t, report.Kubernetes, 2*3+4)
		assert.Equal(t, 1, f.serversAway)
	})
}

func TestRun_AKubeletThatEndsNoPodIsNotAwaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(version string, alike bool) time.Duration {
			f, spec := newFake()
			f.alike, spec.Kubernetes = alike, version
			start := time.Now()
			_, err := f.run(t, spec)
			require.NoError(t, err, version)
			return time.Since(start)
		}
		assert.InDelta(t, took("v1.34.9", false), took("v1.34.9", true), float64(time.Minute), "a patch release makes the same pods")
		assert.Less(t, took("v1.35.8", true), took("v1.34.9", true)+3*takesOver+time.Minute)
	})
}

// The cause of the end is a person, or the network of the computer on which it runs.
func TestRun_AfterOneThatEndedBetweenAKubeletAndItsStaticPodsNoTwoAPIServersAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		ctx, cancel := context.WithCancel(t.Context())
		f.onImage = func(_ *fakeNode, component versions.Component) {
			if component == versions.Kubelet {
				cancel()
			}
		}
		_, err := run(ctx, spec, f, logger{t})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 0, f.nodes[0].remade, "the static pods of the former kubelet run")
		f.unread = len(versions.StaticPods) // it is asked again
		_, err = f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, 1, f.serversAway)
		for _, node := range f.nodes[:3] {
			assert.Equal(t, 1, node.remade, node.Name)
		}
	})
}

// Nobody waits in vain for a kubelet that has made all of its pods, or that makes them as the one before.
func TestRun_AfterOneThatEndedLongAgoAwaitsNoStaticPods(t *testing.T) {
	took := func(alike bool, pause time.Duration) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			f.alike = alike
			ctx, cancel := context.WithCancel(t.Context())
			f.onImage = func(_ *fakeNode, component versions.Component) {
				if component == versions.Kubelet {
					cancel()
				}
			}
			_, err := run(ctx, spec, f, logger{t})
			require.ErrorIs(t, err, context.Canceled)
			f.onImage = nil
			f.alike = false
			time.Sleep(pause)
			start := time.Now()
			_, err = f.run(t, spec)
			require.NoError(t, err)
			took = time.Since(start)
		})
		return took
	}
	long := took(false, time.Hour)
	assert.InDelta(t, long, took(true, time.Hour), float64(15*time.Second)) // a poll or two apart
	assert.InDelta(t, long+takesOver, took(true, 0), float64(15*time.Second))
}

// remake restarts all static pods of a node, as a kubelet of another minor release does some time after its Node is Ready.
func (f *fake) remake(node *fakeNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := maps.Clone(node.runs)
	for component := range node.runs {
		if component != versions.Kubelet {
			node.runs[component] = ""
		}
	}
	if f.nodes[f.holder] == node {
		f.silent++
	}
	away := 0
	for _, other := range f.nodes {
		if other.Role == cluster.ControlPlane && other.runs[versions.APIServer] == "" {
			away++
		}
	}
	f.serversAway = max(f.serversAway, away)
	time.AfterFunc(remakeTime, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		node.runs, node.seen = before, time.Now()
		node.remade++
	})
}

func (f *fake) PodHash(_ context.Context, of turn.Node, component string) (string, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unread > 0 {
		f.unread--
		return "", time.Time{}, errors.New("no route")
	}
	node := f.node(of.Name)
	return fmt.Sprint(node.runs[versions.Component(component)], node.remade), node.seen, nil
}
