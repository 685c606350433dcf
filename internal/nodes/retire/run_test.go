package retire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// fake is a cluster in memory, whose pods are never evicted. A machine that is shut down is off at once. Methods that are not here are not
// called.
type fake struct {
	turn.Remover
	nodes   map[string]turn.KubeNode
	pods    map[string][]turn.Pod // by node
	members []talosapi.Member
	off     map[string]bool
	silent  map[string]bool // off, and no address either
	data    map[string]bool // off, with data of etcd
	log     []string
	etcd    []byte            // snapshot
	servers map[string]string // versions of API servers, by control plane; others do not answer

	leaderless error // why nobody knows the members of etcd

	ceph     turn.Ceph
	cephless error // why nothing is known of Ceph
}

func newFake(declared []turn.Node) *fake {
	f := &fake{nodes: map[string]turn.KubeNode{}, off: map[string]bool{}}
	for i, node := range declared {
		f.nodes[node.Name] = turn.KubeNode{Ready: true}
		if node.Role == cluster.ControlPlane {
			f.members = append(f.members, talosapi.Member{ID: uint64(i + 1), Name: node.Name})
		}
	}
	return f
}

func (f *fake) did(what string) error {
	f.log = append(f.log, what)
	return nil
}

func (f *fake) Machine(_ context.Context, node turn.Node) (turn.Machine, error) {
	if f.off[node.Name] {
		return turn.Machine{}, errors.New("no route")
	}
	return turn.Machine{Stage: "running", Services: map[string]talosapi.Service{"etcd": {State: "Running", Known: true, Healthy: true}}}, nil
}

func (f *fake) Members(context.Context, turn.Node) ([]talosapi.Member, error) {
	return f.members, f.leaderless
}
func (f *fake) Nodes(context.Context) (map[string]turn.KubeNode, error) {
	return maps.Clone(f.nodes), nil
}
func (f *fake) Answers(_ context.Context, node turn.Node) bool { return !f.silent[node.Name] }
func (f *fake) HoldsEtcd(_ context.Context, node turn.Node) (bool, error) {
	if f.silent[node.Name] {
		return false, errors.New("no route")
	}
	return f.data[node.Name], nil
}

func (f *fake) Version(_ context.Context, node turn.Node) (string, error) {
	if version, ready := f.servers[node.Name]; ready {
		return version, nil
	}
	return "", errors.New("connection refused")
}
func (f *fake) Unmet(context.Context, []cluster.Check) (string, error) { return "", nil }
func (f *fake) LastLines(context.Context, turn.Node) []string          { return nil }
func (f *fake) Ceph(context.Context) (turn.Ceph, error)                { return f.ceph, f.cephless }
func (f *fake) Pods(_ context.Context, node string) ([]turn.Pod, error) {
	return slices.Clone(f.pods[node]), nil
}
func (f *fake) ForfeitLeadership(context.Context, turn.Node) error { return nil }
func (f *fake) StepAside(context.Context, turn.Node) (netip.Addr, error) {
	return netip.Addr{}, nil
}
func (f *fake) Cordon(_ context.Context, node string) error { return f.did("cordon " + node) }
func (f *fake) RemoveMember(_ context.Context, _ turn.Node, id uint64) error {
	f.without(id)
	return f.did("remove member")
}
func (f *fake) Uncordon(_ context.Context, node string) error {
	f.release(node)
	return f.did("uncordon " + node)
}
func (f *fake) DeleteNode(_ context.Context, node string) error {
	delete(f.nodes, node)
	return f.did("delete " + node)
}
func (f *fake) release(node string) { f.nodes[node] = turn.KubeNode{Ready: true} }
func (f *fake) connect(context.Context, []turn.Node) (remover, func(), error) {
	return f, func() {}, nil
}

func (f *fake) EtcdSnapshot(_ context.Context, node turn.Node) (io.ReadCloser, error) {
	if f.off[node.Name] || f.etcd == nil {
		return nil, errors.New("connection refused")
	}
	return io.NopCloser(bytes.NewReader(f.etcd)), f.did("snapshot of " + node.Name)
}

func (f *fake) Shutdown(_ context.Context, node turn.Node) error {
	f.off[node.Name], f.nodes[node.Name] = true, turn.KubeNode{}
	return f.did("shut down " + node.Name)
}

func (f *fake) without(id uint64) {
	var left []talosapi.Member
	for _, member := range f.members {
		if member.ID != id {
			left = append(left, member)
		}
	}
	f.members = left
}

func spec(declared []turn.Node) Spec {
	spec := of(declared)
	spec.Cluster, spec.Talosconfig = "infra", "x"
	return *spec
}

func TestRun_RemovesWhatIsNotDeclaredAnyMoreAndRemembersTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "cp-2", "cp-3", "worker-1", "worker-2")
		f, declared := newFake(before), nodes("cp-1", "cp-2", "worker-2", "worker-3")
		f.nodes["by-hand"] = turn.KubeNode{Ready: true}
		report, err := run(t.Context(), spec(declared), NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"cordon cp-3", "remove member", "shut down cp-3", "delete cp-3",
			"cordon worker-1", "shut down worker-1", "delete worker-1"}, f.log)
		assert.Equal(t, []string{"cp-3", "worker-1"}, report.Removed)
		assert.Equal(t, NewRecord(declared), report.Record)
		assert.Contains(t, f.nodes, "by-hand", "a node that was never declared is left alone")
	})
}

func TestRun_TakesASnapshotOfEtcdBeforeAControlPlaneLeaves(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	etcd := snapshottest.New(t)
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "cp-2", "cp-3", "worker-1")
		f, declared := newFake(before), spec(nodes("cp-2", "cp-3"))
		declared.Snapshots.Folder = "snapshots"
		_, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "nothing was removed: etcd gives no snapshot: cp-2: connection refused")
		assert.Empty(t, f.log)

		f.etcd, f.off["cp-2"] = etcd, true
		f.nodes["cp-2"] = turn.KubeNode{}
		report, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
		require.Error(t, err, "without cp-2, etcd cannot spare cp-1")
		assert.Equal(t, "snapshot of cp-3", f.log[0])
		assert.FileExists(t, report.Snapshot)
	})
}

func TestRun_TakesASnapshotOfEtcdBeforeAControlPlaneJoins(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	etcd := snapshottest.New(t)
	synctest.Test(t, func(t *testing.T) {
		before, declared := nodes("cp-1", "worker-1"), spec(nodes("cp-1", "cp-2", "cp-3", "worker-1", "worker-2"))
		f := newFake(before)
		declared.Snapshots.Folder = "snapshots"
		_, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "nothing was changed: etcd gives no snapshot: cp-1: connection refused")

		f.etcd = etcd
		report, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"snapshot of cp-1"}, f.log, "only members are asked")
		assert.FileExists(t, report.Snapshot)
		assert.Equal(t, NewRecord(declared.Nodes), report.Record)
	})
}

// A cluster whose creation was interrupted is completed with more control planes than it began with.
func TestRun_WithoutEtcdAControlPlaneJoinsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, declared := nodes("cp-1"), spec(nodes("cp-1", "cp-2"))
		f := newFake(before)
		f.off["cp-1"] = true
		declared.Snapshots.Folder = "snapshots"
		report, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Empty(t, report.Snapshot)
		_, err = run(t.Context(), declared, Record{}, io.Discard, nil)
		require.NoError(t, err, "without a record, no control plane is known to have joined later")
	})
}

func TestRun_WithoutAControlPlaneThatLeavesTakesNoSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "worker-1")
		f, declared := newFake(before), spec(nodes("cp-1"))
		declared.Snapshots.Folder = "snapshots"
		report, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Empty(t, report.Snapshot)
		assert.Equal(t, []string{"worker-1"}, report.Removed)
	})
}

func TestRun_WithoutANodeThatLeavesConnectsToNothing(t *testing.T) {
	report, err := run(t.Context(), spec(nodes("cp-1")), NewRecord(nodes("cp-1")), io.Discard, nil)
	require.NoError(t, err)
	assert.Equal(t, "no node has left the stack file", report.Sentence())
}

func TestRun_ARefusedPlanConnectsToNothing(t *testing.T) {
	_, err := run(t.Context(), spec(nodes("cp-1")), NewRecord(nodes("cp-1", "cp-2", "cp-3")), io.Discard, nil)
	require.ErrorContains(t, err, "nothing was changed: nodePools: cp-2, cp-3 are control planes")
}

// The state keeps the record of the last run that succeeded.
func TestRun_RefusesAnotherAddressOrVMOfANodeOfAClusterThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "worker-1")
		for i := range before {
			before[i].VM = 100 + i
		}
		moved := slices.Clone(before)
		moved[0].Address, moved[1].VM = talosapitest.AddressOf("cp-9"), 200
		for _, recovers := range []bool{false, true} {
			f, spec := newFake(before), *of(moved)
			spec.Recovers = recovers
			_, err := run(t.Context(), spec, NewRecord(before), &bytes.Buffer{}, f.connect)
			require.ErrorContains(t, err, "nothing was changed: nodePools[].nodes[].address: cp-1 has ")
			require.ErrorContains(t, err, "nodePools[].nodes[].vmId: worker-1 is the VM 101, and 200 is declared")
			f.off["cp-1"] = true
			report, err := run(t.Context(), spec, NewRecord(before), &bytes.Buffer{}, f.connect)
			require.NoError(t, err, "a cluster that has never come up may be corrected")
			assert.Equal(t, NewRecord(moved), report.Record)
			f.silent = map[string]bool{"cp-1": true}
			_, err = run(t.Context(), spec, NewRecord(before), &bytes.Buffer{}, f.connect)
			require.ErrorContains(t, err, "no control plane answers at the address that it had (a control plane that runs etcd: gave up")
			require.ErrorContains(t, err, "worker-1 is the VM 101, and 200 is declared", "it may run where nobody reaches it from here")
			spec.Nodes = slices.Clone(moved)
			spec.Nodes[1].VM = 101
			_, err = run(t.Context(), spec, NewRecord(before), &bytes.Buffer{}, f.connect)
			require.NoError(t, err, "no disk is lost with another address")
			assert.Empty(t, f.log)
		}
	})
}

func TestRun_RefusesAnotherIdentityOfAClusterThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(nodes("cp-1")), spec(nodes("cp-1"))
		s.Identity = Identity{Name: "infra", ID: 1, VIP: netip.MustParseAddr("10.25.11.10")}
		former := s.Record()
		s.Identity.VIP = netip.MustParseAddr("10.25.11.9")
		_, err := run(t.Context(), s, former, io.Discard, f.connect)
		require.ErrorContains(t, err, "nothing was changed: network.vip: the cluster has 10.25.11.10, and 10.25.11.9 is declared")
		f.off["cp-1"] = true
		report, err := run(t.Context(), s, former, io.Discard, f.connect)
		require.NoError(t, err, "a cluster that has never come up may be corrected")
		assert.Equal(t, s.Record(), report.Record)
		assert.Equal(t, s.Identity, report.Lost(nodes("worker-1")).Identity)
	})
}

func TestRun_ASecondRunFinishesWhatAnInterruptedOneBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, declared := nodes("cp-1", "worker-1", "worker-2", "worker-3"), nodes("cp-1", "worker-3")
		f := newFake(before)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // in the removal of the second one
		defer cancel()
		_, err := run(ctx, spec(declared), NewRecord(before), io.Discard, f.connect)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "; removed are: worker-1: to keep one after all, declare it again, and start its machine")
		require.NotContains(t, f.nodes, "worker-1")
		require.Contains(t, f.nodes, "worker-2")
		report, err := run(t.Context(), spec(declared), NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"worker-1", "worker-2"}, report.Removed)
		assert.NotContains(t, f.nodes, "worker-2")
	})
}

func TestRun_RemovesNoWorkerIfThePodsOfTheLastOneFindNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "worker-1", "worker-2")
		f := newFake(before)
		f.nodes["cp-1"], f.pods = turn.KubeNode{Ready: true, Repels: true}, map[string][]turn.Pod{"worker-2": {{Name: "web"}}}
		_, err := run(t.Context(), spec(nodes("cp-1", "worker-9")), NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "nothing was removed: no node that stays takes the 1 pods of worker-2")
		assert.Empty(t, f.log)
	})
}

func TestRun_ReleasesANodeThatStaysAndThatAnEarlierRunLeftCordoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, declared := nodes("cp-1", "worker-1", "worker-2"), nodes("cp-1", "worker-1")
		f := newFake(before)
		f.nodes["worker-1"] = turn.KubeNode{Ready: true, Unschedulable: true, Ours: true}
		_, err := run(t.Context(), spec(declared), NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, "uncordon worker-1", f.log[0])
	})
}

func TestRun_WaitsForANodeThatAnEarlierRunLeftCordonedAsLongAsDeclared(t *testing.T) {
	for _, declared := range []time.Duration{20 * time.Minute, 45 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			before := nodes("cp-1", "worker-1", "worker-2")
			f := newFake(before)
			f.nodes["worker-1"] = turn.KubeNode{Unschedulable: true, Ours: true}
			s := spec(nodes("cp-1", "worker-1"))
			s.ReturnTimeout.Duration = declared
			start := time.Now()
			_, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
			require.ErrorContains(t, err, "worker-1 is not back, and stays cordoned")
			assert.InDelta(t, declared.Minutes(), time.Since(start).Minutes(), 1)
			assert.Empty(t, f.log)
		})
	}
}

func TestRun_ALostClusterStopsARemovalSoonAndSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := nodes("cp-1", "worker-1", "worker-2")
		f := newFake(before)
		f.off["cp-1"] = true
		start := time.Now()
		_, err := run(t.Context(), spec(nodes("cp-1", "worker-1")), NewRecord(before), io.Discard, f.connect)
		require.EqualError(t, err, "nothing was removed: a control plane that runs etcd: gave up after 1m0s (last: cp-1: no route); fix a "+
			"control plane, or declare lifecycle.snapshots.recoverFrom if the cluster is lost, or declare the nodes that leave again")
		assert.LessOrEqual(t, time.Since(start), etcdTimeout+5*time.Second)
		assert.Empty(t, f.log)
	})
}

// Node objects of the snapshot are removed once the cluster runs again.
func TestRun_ALostClusterThatIsRestoredGoesOnAndRemembersTheNodesThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, declared := nodes("cp-1", "cp-2", "cp-3", "worker-1", "worker-2"), nodes("cp-1", "worker-1")
		f := newFake(before)
		for _, node := range before[:3] {
			f.off[node.Name] = true
		}
		s := spec(declared)
		s.Recovers = true
		start := time.Now()
		report, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), etcdTimeout+5*time.Second)
		assert.Empty(t, f.log)
		assert.Equal(t, []string{"cp-2", "cp-3", "worker-2"}, report.Left)
		assert.Contains(t, report.Sentence(), "cp-2, cp-3, worker-2 left without a drain")

		f.members = f.members[:1] // a restored etcd has one member
		delete(f.off, "cp-1")
		f.off["worker-2"] = true
		for _, gone := range []string{"cp-2", "cp-3", "worker-2"} {
			f.nodes[gone] = turn.KubeNode{}
		}
		report, err = run(t.Context(), spec(declared), report.Record, io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"delete cp-2", "delete cp-3", "delete worker-2"}, f.log)
		assert.Equal(t, NewRecord(declared), report.Record)
	})
}

func TestRun_ADeclaredRecoveryTakesNoClusterForLostThatMayOnlyBoot(t *testing.T) {
	before := nodes("cp-1", "cp-2", "cp-3", "worker-1")
	of := func(declared []turn.Node) Spec {
		s := spec(declared)
		s.Recovers = true
		return s
	}
	dead := func(f *fake) *fake {
		for _, node := range before {
			f.off[node.Name] = true
		}
		return f
	}
	silent := map[string]bool{"cp-1": true, "cp-2": true, "cp-3": true, "worker-1": true}
	replaced := slices.Clone(before)
	for i := range before {
		before[i].Generation = 1
		replaced[i].Generation = 1
	}
	replaced[1].Generation = 2
	synctest.Test(t, func(t *testing.T) {
		f := dead(newFake(before))
		f.data = map[string]bool{"cp-2": true}
		report, err := run(t.Context(), of(before[:3]), NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "the cluster is not lost: control planes without data of etcd: gave up after 5m0s (last: cp-2: has data "+
			"of etcd); run up again once its etcd runs")
		assert.Empty(t, report.Left)

		f = dead(newFake(before))
		f.silent = silent
		_, err = run(t.Context(), of(replaced), NewRecord(before), io.Discard, f.connect)
		require.ErrorContains(t, err, "whether the cluster is lost is not known")
		require.ErrorContains(t, err, "declare the former generation of cp-2")
		report, err = run(t.Context(), of(before[:3]), NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err, "no machine is deleted before a bootstrap")
		assert.Equal(t, []string{"worker-1"}, report.Left)
	})
}

func TestRun_ADeclaredRecoveryDoesNotLoosenTheRulesOfAClusterThatRuns(t *testing.T) {
	before := nodes("cp-1", "cp-2", "cp-3")
	f := newFake(before)
	s := spec(nodes("cp-1"))
	s.Recovers = true
	_, err := run(t.Context(), s, NewRecord(before), io.Discard, f.connect)
	require.ErrorContains(t, err, "nothing was changed: nodePools: cp-2, cp-3 are control planes")
	assert.Empty(t, f.log)
}

func TestRun_AReplacedNodeIsRemovedAndItsNewGenerationRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, declared := nodes("cp-1", "cp-2", "cp-3"), nodes("cp-1", "cp-2", "cp-3")
		declared[1].Generation = 2
		f := newFake(before)
		report, err := run(t.Context(), spec(declared), NewRecord(before), io.Discard, f.connect)
		require.NoError(t, err)
		assert.Equal(t, []string{"cordon cp-2", "remove member", "shut down cp-2", "delete cp-2"}, f.log)
		assert.Equal(t, 2, report.Nodes["cp-2"].Generation)
		report, err = run(t.Context(), spec(declared), report.Record, io.Discard, nil)
		require.NoError(t, err)
		assert.Empty(t, report.Removed)
	})
}

func TestRun_ReplacesNoNodeWhoseKubeletWouldBeNewerThanEveryAPIServer(t *testing.T) {
	for name, one := range map[string]struct {
		servers  map[string]string
		declared string
		refused  bool
	}{
		"another minor release":      {servers: map[string]string{"cp-1": "v1.34.2", "cp-2": "v1.34.2"}, declared: "v1.35.8", refused: true},
		"in the middle of it":        {servers: map[string]string{"cp-1": "v1.35.8", "cp-2": "v1.34.2"}, declared: "v1.35.8"},
		"a patch release":            {servers: map[string]string{"cp-1": "v1.35.7"}, declared: "v1.35.8"},
		"no answer":                  {declared: "v1.35.8"},
		"a machine was not replaced": {servers: map[string]string{"cp-1": "v1.34.2"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			before := nodes("cp-1", "cp-2", "worker-1", "worker-2")
			f, declared := newFake(before), spec(again(before, 2, "worker-2"))
			f.servers, declared.Kubernetes = one.servers, one.declared
			_, err := run(t.Context(), declared, NewRecord(before), io.Discard, f.connect)
			if !one.refused {
				require.NoError(t, err, name)
				return
			}
			require.EqualError(t, err, "nothing was changed: kubernetes.version: is v1.35.8, and worker-2 would join with it while the API servers "+
				"run v1.34.2; declare v1.34.2 until they have joined, and upgrade in the next run", name)
			assert.Empty(t, f.log, name)
		})
	}
}
