package retire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// osdsOn returns Ceph with three copies, and the OSDs 0, 1, … one after the other on these nodes.
func osdsOn(hosts ...string) turn.Ceph {
	ceph := turn.Ceph{Copies: 3}
	for i, host := range hosts {
		ceph.OSDs = append(ceph.OSDs, turn.OSD{ID: string(rune('0' + i)), Host: host, Runs: true})
	}
	return ceph
}

// A dead machine cannot be emptied first, so nothing is refused.
func TestRun_ANodeWithOSDsLeavesWithAWarningAndTheCommandThatPurgesThem(t *testing.T) {
	for _, dead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			before, declared := nodes("cp-1", "worker-1", "worker-2", "worker-3"), nodes("cp-1", "worker-1", "worker-2")
			f, said := newFake(before), &bytes.Buffer{}
			f.ceph = osdsOn("worker-1", "worker-3", "worker-2", "worker-3", "gone") // the last ones were not purged
			if dead {
				f.off["worker-3"], f.nodes["worker-3"] = true, turn.KubeNode{}
			}
			report, err := run(t.Context(), spec(declared), NewRecord(before), said, f.connect)
			require.NoError(t, err)
			assert.Equal(t, []string{"worker-3"}, report.Removed)
			warning, after, found := bytes.Cut(said.Bytes(), []byte("worker-3 has the OSDs 1, 3 of Ceph"))
			require.True(t, found, said)
			assert.NotContains(t, string(warning), "worker-3: ", "before anything is done")
			assert.Contains(t, string(after), "docs/nodes.md, A node with an OSD of Ceph")
			assert.Contains(t, string(after), "Ceph keeps 3 copies, and 2 nodes with OSDs stay")
			assert.Equal(t, []string{"worker-3: kubectl rook-ceph rook purge-osd 1,3"}, report.Purge)
			assert.Contains(t, report.Sentence(), "kubectl rook-ceph rook purge-osd 1,3")
			assert.Contains(t, report.Text(), "  purge    worker-3: kubectl rook-ceph rook purge-osd 1,3\n")
			assert.Equal(t, NewRecord(declared), report.Record)
		})
	}
}

func TestRun_ThatFailsAfterARemovalNamesWhatToPurgeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "worker-1", "worker-2", "worker-3")
		f := newFake(before)
		f.ceph = osdsOn("worker-1", "worker-2", "worker-3")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // in the removal of the second one
		defer cancel()
		_, err := run(ctx, spec(nodes("cp-1", "worker-3")), NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "removed are: worker-1: ")
		require.ErrorContains(t, err, "; remove the OSDs from Ceph: worker-1: kubectl rook-ceph rook purge-osd 0")
	})
}

func TestRun_AReplacedNodeWithOSDsIsPurgedAndGetsNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "worker-1", "worker-2", "worker-3")
		f, said := newFake(before), &bytes.Buffer{}
		f.ceph = osdsOn("worker-1", "worker-2", "worker-3")
		report, err := run(t.Context(), spec(again(before, 2, "worker-3")), NewRecord(before), said, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"worker-3: once it has joined again, kubectl rook-ceph operator restart, and then kubectl rook-ceph rook " +
			"purge-osd 2"}, report.Purge)
		assert.NotContains(t, said.String(), "Ceph keeps 3 copies", "three nodes have OSDs again")
	})
}

func TestRun_WithoutOSDsOnTheNodesThatLeaveNothingIsSaidOfCeph(t *testing.T) {
	for name, one := range map[string]struct {
		ceph turn.Ceph
		err  error
		says string
	}{
		"OSDs elsewhere": {ceph: osdsOn("worker-1")},
		"no Rook":        {},
		"no storage":     {err: errors.New("no route")},
		"not known":      {err: errors.New("no route"), says: "whether the nodes that leave have OSDs of Ceph is not known: no route"},
	} {
		synctest.Test(t, func(t *testing.T) {
			before := nodes("cp-1", "worker-1", "worker-2")
			f, said := newFake(before), &bytes.Buffer{}
			f.ceph, f.cephless = one.ceph, one.err
			given := spec(before[:2])
			if one.says != "" { // otherwise the cluster has no storage, so nobody misses it
				given.Storage = []string{"worker-1"}
			}
			report, err := run(t.Context(), given, NewRecord(before), said, f.connect)
			require.NoError(t, err, name)
			assert.Empty(t, report.Purge, name)
			if one.says == "" {
				assert.NotContains(t, said.String(), "Ceph", name)
			} else {
				assert.Contains(t, said.String(), one.says, name)
			}
		})
	}
}

// What the nodes had that are not declared any more, only the cluster knows.
func TestPlan_NamesTheNodesThatMayHaveOSDs(t *testing.T) {
	before := nodes("cp-1", "cp-2", "cp-3", "worker-1", "worker-2", "worker-3")
	plan := func(declared []turn.Node) Plan {
		plan, err := NewPlan(NewRecord(before), of(declared), false)
		require.NoError(t, err)
		return plan
	}
	stores := nodes("worker-1", "worker-2")
	assert.Equal(t, []string{"worker-3"}, plan(before[:5]).MayHaveOSDs(stores))
	assert.Empty(t, plan(append(nodes("cp-1", "cp-2"), before[3:]...)).MayHaveOSDs(stores), "no control plane has one")
	assert.Equal(t, []string{"worker-2"}, plan(again(before, 2, "worker-2")).MayHaveOSDs(stores))
	assert.Empty(t, plan(again(before, 2, "worker-3")).MayHaveOSDs(stores), "it is declared without")
	assert.Empty(t, plan(before[:5]).MayHaveOSDs(nil))
}
