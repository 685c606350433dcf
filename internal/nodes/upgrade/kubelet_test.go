package upgrade

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
