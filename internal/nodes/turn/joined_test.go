package turn

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
)

// replaced is a fake of which nodes have left: their new machines have no configuration yet.
func replaced(f *fake, nodes []Node, names ...string) []Node {
	nodes = slices.Clone(nodes)
	for _, name := range names {
		f.down[name] = errors.New("certificate required")
		delete(f.nodes, name)
		f.members = slices.DeleteFunc(f.members, func(m talosapi.Member) bool { return m.Name == name })
		nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.Name == name })].Generation = 2
	}
	return nodes
}

func TestAwaitJoined_EndsOnceTheNodeIsAPartOfTheClusterAgain(t *testing.T) {
	for name, member := range map[string]bool{"cp-2": true, "worker-1": false} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			nodes = replaced(f, nodes, name)
			e, start := f.engine(t, nodes), time.Now()
			time.AfterFunc(time.Minute, func() { f.with(func() { delete(f.down, name) }) })
			time.AfterFunc(2*time.Minute, func() { f.with(func() { f.nodes[name] = KubeNode{} }) })
			time.AfterFunc(3*time.Minute, func() {
				f.with(func() {
					if member {
						f.members = append(f.members, talosapi.Member{ID: 9, Name: name})
					}
				})
			})
			require.NoError(t, e.AwaitJoined(t.Context(), named(nodes, name)), "it need not be Ready")
			want := 2 * time.Minute
			if member {
				want = 3 * time.Minute
			}
			assert.InDelta(t, want.Seconds(), time.Since(start).Seconds(), 15, name)
			assert.Empty(t, f.log)
		})
	}
}

func TestAwaitJoined_SaysWhatIsMissingAfterTheDeclaredTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		nodes = replaced(f, nodes, "cp-2")
		e, start := f.engine(t, nodes), time.Now()
		e.ReturnTimeout.Duration = 7 * time.Minute
		require.ErrorContains(t, e.AwaitJoined(t.Context(), named(nodes, "cp-2")),
			"cp-2 has not joined again: cp-2's return: gave up after 7m0s (last: its Talos API does not answer: certificate required); "+
				"no other node is changed")
		assert.InDelta(t, 7, time.Since(start).Minutes(), 1)
	})
}

func TestBegin_AReplacedWorkerIsOutOfServiceUntilItHasJoinedAgain(t *testing.T) {
	for most, waits := range map[cluster.Share]bool{"1": true, "2": false} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, 3, most)
			q.engine.Nodes = replaced(q.fake, q.nodes, "worker-3")
			q.ask(t, "worker-1", "worker-2")
			want := []string{"worker-1"}
			if waits {
				want = nil
			}
			assert.Equal(t, want, q.began(time.Minute), most)
			q.with(func() { q.fake.nodes["worker-3"] = KubeNode{Ready: true} })
			for _, next := range []string{"worker-1", "worker-2"} {
				assert.Equal(t, []string{next}, q.began(time.Minute), most)
				q.end(t, next)
			}
			assert.Empty(t, q.errs, most)
		})
	}
}

// The machine gets its configuration after the removal of nodes, in the same run.
func TestRemove_AWorkerSaysHowAReplacedOneJoinsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(3)
		nodes = replaced(f, nodes, "worker-3")
		require.ErrorContains(t, f.remove(t.Context(), t, nodes, "worker-1"), "(last: worker-3 was replaced and has not joined again; "+
			"let it join first, by a run in which worker-1 is declared as before (maxUnavailable is 1))")
		assert.Empty(t, f.log)
	})
}

func TestBegin_NoControlPlaneChangesUntilAReplacedOneHasJoinedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := ofFive()
		nodes = replaced(f, nodes, "cp-5")
		e := f.engine(t, nodes)
		require.ErrorContains(t, e.Take(t.Context(), f.change(nodes, "cp-1")),
			"cp-5 was replaced and has not joined again; if it waits for its configuration, run up again")
		assert.Empty(t, f.log, "four members would be a quorum, and a fifth one is about to join")
	})
	synctest.Test(t, func(t *testing.T) {
		f, nodes := ofFive()
		nodes = replaced(f, nodes, "cp-5")
		time.AfterFunc(time.Minute, func() {
			f.with(func() {
				delete(f.down, "cp-5")
				f.members, f.nodes["cp-5"] = append(f.members, talosapi.Member{ID: 9, Name: "cp-5"}), KubeNode{Ready: true, Boot: "1"}
			})
		})
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "cp-1")))
	})
}
