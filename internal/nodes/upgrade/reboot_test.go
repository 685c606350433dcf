package upgrade

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

func TestRun_RebootsTheNodesThatHaveBootedBeforeTheDeclaredTimeInTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		for _, node := range f.nodes {
			node.booted = time.Now().Add(-time.Hour)
		}
		f.node("cp-2").booted = time.Now().Add(-time.Minute)
		spec.BootedSince = time.Now().Add(-10 * time.Minute)
		spec.Snapshots.Folder = "snapshots"
		report, err := f.run(t, spec)
		require.NoError(t, err)
		var want []string
		for _, node := range []string{"cp-1", "cp-3", "worker-1", "worker-2"} {
			want = append(want, "cordon "+node, "reboot "+node, "uncordon "+node)
		}
		assert.Equal(t, want, f.log, "and no snapshot: nothing changes")
		assert.Equal(t, []string{"cp-1", "cp-3", "worker-1", "worker-2"}, report.Rebooted)
		assert.Contains(t, report.Sentence(), "rebooted 4 nodes after")

		f.log = nil
		report, err = f.run(t, spec)
		require.NoError(t, err)
		assert.Empty(t, f.log)
		assert.Empty(t, report.Rebooted)
	})
}

func TestRun_AnUpgradeOfTalosIsTheRebootThatIsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		spec.BootedSince = time.Now()
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Empty(t, report.Rebooted)
		assert.Empty(t, only(f.log, "reboot "))
	})
}

func TestRun_ANodeThatIsNotBackEndsTheReboots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		spec.BootedSince = time.Now()
		f.onReboot = func(*fakeNode) error { return errors.New("shutting down") }
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "cp-1: shutting down")
		assert.Len(t, only(f.log, "cordon "), 1)
	})
}

func TestSpec_ATimeInTheFutureIsRefused(t *testing.T) {
	_, spec := newFake()
	spec.BootedSince = time.Now().Add(time.Hour)
	require.ErrorContains(t, spec.Validate(), "bootedSince: is ")
	require.ErrorContains(t, spec.Validate(), "in the future")
	spec.BootedSince = time.Now()
	require.NoError(t, spec.Validate())
}

// It would not come back, and stay cordoned, for which each later run would wait before it came to the configurations.
func TestRun_RebootsNoNodeOnceAComponentIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.broken = map[versions.Component]string{versions.ControllerManager: "cp-1"}
		_, err := f.run(t, spec)
		require.Error(t, err)
		f.log, spec.BootedSince = nil, time.Now().Add(-time.Second)
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, "kube-controller-manager on cp-1", report.Left)
		assert.Empty(t, f.log)
	})
}
