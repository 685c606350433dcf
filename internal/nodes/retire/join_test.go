package retire

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

func TestRun_ReplacesNoControlPlaneWhileAnotherMemberIsAway(t *testing.T) {
	for name, skipped := range map[string]bool{"one that nobody has given up": false, "one that is left out": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := nodes("cp-1", "cp-2", "cp-3", "cp-4", "cp-5")
				s, f := spec(nodes("cp-1", "cp-2", "cp-3", "cp-4", "cp-5")), newFake(before)
				s.Nodes[3].Generation = 2
				f.off["cp-5"] = true
				if skipped {
					s.Skip = cluster.SkippedNodes{{Name: "cp-5", Reason: "waits for a disk"}}
				}
				start := time.Now()
				_, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
				require.ErrorContains(t, err, "nothing was removed: ")
				require.ErrorContains(t, err, "cp-5: its Talos API does not answer: no route")
				require.ErrorContains(t, err, "; "+takesNone)
				assert.Equal(t, skipped, time.Since(start) < time.Second, "nobody waits for a node that is left out")
				assert.Empty(t, f.log)
				delete(f.off, "cp-5")
				report, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
				require.NoError(t, err, "a node that is left out may run")
				assert.Equal(t, []string{"cp-4"}, report.Removed)
			})
		})
	}
}

func TestRun_ReplacesADeadControlPlaneOnlyOnceNoOtherOneIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "cp-2", "cp-3", "cp-4", "cp-5")
		f := newFake(before)
		for _, dead := range []string{"cp-4", "cp-5"} {
			f.off[dead], f.nodes[dead] = true, turn.KubeNode{}
		}
		s := spec(nodes("cp-1", "cp-2", "cp-3", "cp-4", "cp-5"))
		s.Nodes[3].Generation = 2
		_, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, takesNone)
		require.Empty(t, f.log)

		without := spec(nodes("cp-1", "cp-2", "cp-3", "cp-4"))
		without.Skip = cluster.SkippedNodes{{Name: "cp-4", Reason: "is replaced next"}}
		report, err := run(t.Context(), without, NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err, "no member comes for the one that goes")
		require.Equal(t, []string{"cp-5"}, report.Removed)
		without.Skip, without.Nodes[3].Generation = nil, 2
		report, err = run(t.Context(), without, report.Record, io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"cp-4"}, report.Removed)
	})
}

func TestRun_WithoutAQuorumNobodyIsToldToRemoveAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "cp-2", "cp-3")
		s, f := spec(nodes("cp-1", "cp-2", "cp-3", "cp-4")), newFake(before)
		f.leaderless = errors.New("etcdserver: no leader")
		_, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "the members of etcd cannot be listed: etcdserver: no leader")
		require.NotContains(t, err.Error(), takesNone)
	})
}

func TestRun_AControlPlaneJoinsOnlyWithAllMembersThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "cp-2", "cp-3")
		s, f := spec(nodes("cp-1", "cp-2", "cp-3", "cp-4", "cp-5")), newFake(before)
		f.off["cp-3"] = true
		_, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "nothing was changed: etcd's members that stay: ")
		require.ErrorContains(t, err, takesNone)
		f.members = append(f.members, talosapi.Member{ID: 8, Name: "cp-4"}, talosapi.Member{ID: 9, Name: "cp-5"})
		_, err = run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err, "an interrupted run has added them")
	})
}
