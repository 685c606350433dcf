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
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// skipping returns an engine that leaves out a node whose machine is dead.
func (f *fake) skipping(t *testing.T, nodes []Node, name string) *Engine {
	f.dies(name)
	e := f.engine(t, slices.DeleteFunc(slices.Clone(nodes), func(node Node) bool { return node.Name == name }))
	e.Skip = []cluster.SkippedNode{{Name: name, Reason: "waits for a disk"}}
	return e
}

// ofFive returns a fake with five control planes and a worker.
func ofFive() (*fake, []Node) {
	f, nodes := newFake(1)
	for _, name := range []string{"cp-4", "cp-5"} {
		machine := *f.machines["cp-1"]
		f.machines[name], f.nodes[name] = &machine, f.nodes["cp-1"]
		f.members = append(f.members, talosapi.Member{ID: uint64(len(f.members) + 1), Name: name})
		nodes = append(nodes, Node{Name: name, Role: cluster.ControlPlane, Address: talosapitest.AddressOf(name)})
	}
	return f, nodes
}

func TestSkip_AWorkerThatIsLeftOutHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(3)
		f.nodes["worker-2"] = KubeNode{Unschedulable: true, Ours: true}
		e := f.skipping(t, nodes, "worker-2")
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "worker-1")))
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "cp-1")))
		require.NoError(t, e.Release(t.Context()), "the node that an earlier run has left cordoned is not waited for")
		assert.NotContains(t, f.log, "uncordon worker-2")
	})
}

func TestSkip_AControlPlaneThatIsLeftOutStillCountsForEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		e := f.skipping(t, nodes, "cp-3")
		start := time.Now()
		err := e.Take(t.Context(), f.change(nodes, "cp-1"))
		require.ErrorContains(t, err, "without it, 1 of etcd's 3 members are healthy, and 2 are needed; "+
			"lifecycle.skip leaves out cp-3: bring that node back, or replace it, first")
		assert.Less(t, time.Since(start), SpareTimeout, "waiting cannot help")
		assert.Empty(t, f.log)
	})
	synctest.Test(t, func(t *testing.T) {
		f, nodes := ofFive()
		require.NoError(t, f.skipping(t, nodes, "cp-3").Take(t.Context(), f.change(nodes, "cp-1")), "four of five are a quorum without it")
	})
	synctest.Test(t, func(t *testing.T) {
		f, nodes := ofFive()
		e := f.skipping(t, nodes, "cp-3")
		f.down["cp-4"] = errors.New("no route")
		require.ErrorContains(t, e.Take(t.Context(), f.change(nodes, "cp-1")), "cp-4: its Talos API does not answer")
	})
}

func TestSkip_AControlPlaneIsRemovedOnlyIfTheOthersAreAQuorumWithoutTheOneThatIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := ofFive()
		e := f.skipping(t, nodes, "cp-5")
		e.Nodes = slices.DeleteFunc(e.Nodes, func(node Node) bool { return node.Name == "cp-4" })
		require.NoError(t, e.Remove(t.Context(), f, named(nodes, "cp-4")), "three of the four that are left are healthy")
	})
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		e := f.skipping(t, nodes, "cp-3")
		e.Nodes = slices.DeleteFunc(e.Nodes, func(node Node) bool { return node.Name == "cp-2" })
		require.ErrorContains(t, e.Remove(t.Context(), f, named(nodes, "cp-2")),
			"without it, 1 of etcd's 2 members are healthy, and 2 are needed")
	})
}

func TestSkip_AControlPlaneWhoseEtcdGoesOnNeedsOnlyTheAPIServersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		e, change := f.skipping(t, nodes, "cp-3"), f.change(nodes, "cp-1")
		change.Quiet, change.KeepsEtcd = true, true
		require.NoError(t, e.Take(t.Context(), change))
	})
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		e, change := f.skipping(t, nodes, "cp-3"), f.change(nodes, "cp-1")
		change.Quiet, change.KeepsEtcd = true, true
		f.down["cp-2"] = errors.New("no route")
		require.ErrorContains(t, e.Take(t.Context(), change), "cp-2: its Talos API does not answer")
	})
}
