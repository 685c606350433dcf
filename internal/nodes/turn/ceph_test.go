package turn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keepsOSD gives a worker an OSD, which Rook keeps there until a time.
func (f *fake) keepsOSD(on string, until time.Time) {
	f.pods[on] = append(f.pods[on], Pod{Namespace: "rook-ceph", Name: "rook-ceph-osd-1-6c9f-x", UID: "osd-1"})
	f.onEvict = func(pod Pod) error {
		if pod.UID == "osd-1" && time.Now().Before(until) {
			return BlockedError{"The disruption budget rook-ceph-osd-host-" + on + " needs 1 healthy pods and has 1 currently"}
		}
		return nil
	}
}

func TestDrain_OfANodeWhoseOSDsRookKeepsSaysWhatCephLacksAndWhatHelps(t *testing.T) {
	osd := OSD{ID: "1", Host: "worker-1", Runs: true}
	for name, one := range map[string]struct {
		ceph Ceph
		err  error
		says []string
		not  string
	}{
		"an OSD of another node is down": {
			ceph: Ceph{Lacks: []string{"1 osds down", "2 pgs degraded"}, OSDs: []OSD{osd, {ID: "2", Host: "worker-2"}, {ID: "3", Host: "worker-2"}}},
			says: []string{"Ceph says: 1 osds down; 2 pgs degraded", "worker-2 has OSDs that do not run: 2, 3"}, not: "purge-osd",
		},
		"an OSD was not purged": {
			ceph: Ceph{OSDs: []OSD{osd, {ID: "7", Host: "former"}}},
			says: []string{"former is no node any more and has OSDs: kubectl rook-ceph rook purge-osd 7"}, not: "Ceph says",
		},
		"its own OSD was evicted": {
			ceph: Ceph{OSDs: []OSD{osd, {ID: "4", Host: "worker-1"}}},
			says: []string{"rook-ceph-operator, if it runs, allows it within a minute once Ceph has all copies"}, not: "worker-1 has OSDs",
		},
		"its own OSD was evicted, and Ceph has noticed": {
			ceph: Ceph{Lacks: []string{"1 osds down"}, OSDs: []OSD{osd, {ID: "4", Host: "worker-1"}}},
			says: []string{"Ceph says: 1 osds down", "allows it within a minute"}, not: "worker-1 has OSDs",
		},
		"nobody answers": {err: errors.New("no route"), says: []string{"what Ceph lacks is not known: no route"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			f.keepsOSD("worker-1", time.Now().Add(time.Hour))
			f.ceph = func() (Ceph, error) { return one.ceph, one.err }
			err := f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1"))
			require.ErrorContains(t, err, "pod rook-ceph/rook-ceph-osd-1-6c9f-x: The disruption budget rook-ceph-osd-host-worker-1 needs", name)
			for _, says := range one.says {
				require.ErrorContains(t, err, says, name)
			}
			require.ErrorContains(t, err, "A node with an OSD of Ceph", name)
			assert.NotContains(t, err.Error(), "delete the pod by hand", "it is the disk of the only other copy")
			if one.not != "" {
				assert.NotContains(t, err.Error(), one.not, name)
			}
		})
	}
}

func TestDrain_GoesOnOnceRookLetsTheOSDsGoAndAsksCephSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.keepsOSD("worker-1", time.Now().Add(5*time.Minute))
		asked := 0
		f.ceph = func() (Ceph, error) { asked++; return Ceph{}, nil }
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
		assert.Contains(t, f.ended, "rook-ceph-osd-1-6c9f-x")
		assert.LessOrEqual(t, asked, 5*4+1)
		assert.Positive(t, asked)
	})
}

func TestDrain_ThatNoOSDBlocksAsksNothingOfCeph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.onEvict = func(Pod) error {
			return BlockedError{"The disruption budget web needs 3 healthy pods and has 3 currently"}
		}
		err := f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1"))
		require.ErrorContains(t, err, "fix the PodDisruptionBudget, or delete the pod by hand, and run up again")
		assert.NotContains(t, err.Error(), "Ceph")
	})
}
