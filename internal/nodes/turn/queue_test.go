package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// queue is what several callers that ask for turns at the same time have got.
type queue struct {
	*fake
	engine *Engine
	nodes  []Node
	of     string // what the next change is of
	turns  map[string]*Turn
	errs   map[string]error
}

func newQueue(t *testing.T, workers int, most cluster.Share) *queue {
	f, nodes := newFake(workers)
	q := &queue{fake: f, engine: f.engine(t, nodes), nodes: nodes, turns: map[string]*Turn{}, errs: map[string]error{}}
	q.engine.MaxUnavailable = most
	return q
}

// ask asks for turns, in this order.
func (q *queue) ask(t *testing.T, names ...string) {
	of := q.of
	for _, name := range names {
		go func() {
			turn, err := q.engine.Begin(t.Context(), Change{Node: named(q.nodes, name), Of: of, Drains: true})
			q.with(func() {
				if err != nil {
					q.errs[name] = err
				} else {
					q.turns[name] = turn
				}
			})
		}()
		synctest.Wait()
	}
}

// began returns which nodes are in their turn after a while of the bubble's time, which costs none.
func (q *queue) began(after time.Duration) []string {
	time.Sleep(after)
	synctest.Wait()
	var names []string
	q.with(func() {
		for _, node := range q.nodes {
			if q.turns[node.Name] != nil {
				names = append(names, node.Name)
			}
		}
	})
	return names
}

// end ends a turn. Others begin meanwhile.
func (q *queue) end(t *testing.T, name string) {
	var turn *Turn
	q.with(func() {
		turn = q.turns[name]
		delete(q.turns, name)
	})
	require.NoError(t, turn.End(t.Context()))
}

func TestBegin_GivesOneTurnAfterTheOtherHoweverLongTheyTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, "1")
		q.ask(t, "worker-1", "worker-2")
		assert.Equal(t, []string{"worker-1"}, q.began(3*SpareTimeout))
		q.end(t, "worker-1")
		assert.Equal(t, []string{"worker-2"}, q.began(time.Minute))
		q.end(t, "worker-2")
		assert.Empty(t, q.errs)
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1", "cordon worker-2", "uncordon worker-2"}, q.log)
	})
}

func TestBegin_ControlPlanesGoFirstAndAloneAndWorkersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 3, "2")
		q.ask(t, "worker-3", "worker-2", "worker-1", "cp-2", "cp-1")
		for _, want := range []string{"cp-1", "cp-2", "worker-1"} {
			assert.Equal(t, []string{want}, q.began(time.Minute), "the first worker shows what the change does")
			q.end(t, want)
		}
		assert.Equal(t, []string{"worker-2", "worker-3"}, q.began(time.Minute))
		q.end(t, "worker-2")
		q.end(t, "worker-3")
	})
}

func TestTake_AHundredWorkersOfWhichTwentyMayBeAwayTakeATenthOfTheTime(t *testing.T) {
	together := func(_ *Engine, nodes []Node, do func(Node) error) error { return InParallel(len(nodes), nodes, do) }
	took := func(share cluster.Share, begin func(*Engine, []Node, func(Node) error) error) (took time.Duration) {
		most := 0
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(100)
			e := f.engine(t, nodes)
			e.MaxUnavailable = share
			f.onEvict = func(Pod) error {
				e.mu.Lock()
				defer e.mu.Unlock()
				most = max(most, len(e.taking))
				return nil
			}
			start := time.Now()
			require.NoError(t, begin(e, nodes[3:], func(node Node) error { return e.Take(t.Context(), f.change(nodes, node.Name)) }))
			took = time.Since(start)
		})
		assert.Equal(t, share.Of(100), most, "nodes that were drained at once")
		return took
	}
	alone := took("1", (*Engine).InOrder)
	assert.Less(t, took("20%", (*Engine).InOrder), alone/10, "by runs of the probe, which ask for as many turns as there may be")
	assert.Less(t, took("20%", together), alone/10, "by updates of resources, which all ask at the same time")
}

func TestBegin_TheFirstWorkerWithEachChangeIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 3, "3")
		for _, q.of = range []string{"VM", "configuration"} {
			q.ask(t, "worker-1", "worker-2", "worker-3")
			assert.Equal(t, []string{"worker-1"}, q.began(time.Minute), "what another %s does, no other change has shown", q.of)
			q.end(t, "worker-1")
			assert.Equal(t, []string{"worker-2", "worker-3"}, q.began(time.Minute))
			q.end(t, "worker-2")
			q.end(t, "worker-3")
		}
	})
}

func TestBegin_NodesWithDisksOfTheStorageTakeTheirTurnsOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 4, "3")
		q.engine.Storage, q.engine.proven = []string{"worker-1", "worker-2", "worker-3"}, map[string]bool{"": true}
		q.ask(t, "worker-1", "worker-2", "worker-3", "worker-4")
		assert.Equal(t, []string{"worker-1", "worker-4"}, q.began(time.Minute))
		q.end(t, "worker-1")
		assert.Equal(t, []string{"worker-2", "worker-4"}, q.began(time.Minute))
	})
}

func TestBegin_WaitsForOtherNodesAsFarAsTheChangeNeedsThem(t *testing.T) {
	dead := func(q *queue) {
		q.dies("worker-2")
		q.dies("cp-2")
	}
	sick := func(q *queue) {
		q.machines["worker-2"].Services["kubelet"] = talosapi.Service{State: "Waiting", Message: "exit code 1"}
	}
	serverless := func(q *queue) {
		q.machines["cp-2"].Unmet = map[string]string{"staticPods": "kube-apiserver-cp-2 not ready"}
	}
	for _, one := range []struct {
		others func(*queue)
		awaits Awaited
		begins bool
		says   string
	}{
		{dead, Spared, false, ""}, {dead, OthersWell, true, ""}, {dead, Nothing, true, ""},
		{sick, OthersWell, false, "worker-2: kubelet is Waiting (exit code 1)"}, {sick, Nothing, true, ""},
		{serverless, OthersWell, false, "cp-2: its static pods are not ready: kube-apiserver-cp-2 not ready"}, {serverless, Nothing, true, ""},
	} {
		for _, node := range []string{"cp-1", "worker-1"} {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 2, "1")
				one.others(q)
				start := time.Now()
				err := q.engine.Take(t.Context(), Change{Node: named(q.nodes, node), Quiet: true, Awaits: one.awaits,
					Act: func(context.Context) error { return nil }})
				assert.Equal(t, one.begins, err == nil, "%s %v: %v", node, one.awaits, err)
				assert.Equal(t, one.begins, time.Since(start) < time.Minute, node)
				if !one.begins {
					assert.ErrorContains(t, err, one.says)
				}
			})
		}
	}
}

func TestBegin_AControlPlaneIsNotSparedWhileTheAPIServerOfAnotherIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1, "1")
		q.machines["cp-2"].Unmet = map[string]string{"staticPods": "kube-apiserver-cp-2 not ready"}
		q.ask(t, "cp-1")
		assert.Empty(t, q.began(time.Minute))
		q.with(func() { q.machines["cp-2"].Unmet = nil })
		assert.Equal(t, []string{"cp-1"}, q.began(time.Minute))
		q.end(t, "cp-1")
	})
}

func TestFail_UncordonsAndEndsAllOtherTurnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 3, "1")
		q.ask(t, "worker-1", "worker-2")
		require.Equal(t, []string{"worker-1"}, q.began(time.Minute))
		require.EqualError(t, q.turns["worker-1"].Fail(t.Context(), errors.New("timeout of the task")), "worker-1: timeout of the task")
		start := time.Now()
		q.ask(t, "worker-3")
		q.began(2 * time.Second)
		assert.Less(t, time.Since(start), 3*time.Second)
		for _, name := range []string{"worker-2", "worker-3"} {
			assert.EqualError(t, q.errs[name], name+" is not changed: the turn of worker-1 has failed; fix that node, and run up again")
		}
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, q.log)
		require.ErrorContains(t, q.engine.Release(t.Context()), "the turn of worker-1 has failed")
	})
}

func TestFail_LeavesANodeCordonedThatDoesNotRunAsBefore(t *testing.T) {
	for name, one := range map[string]struct {
		change func(*fake)
		want   string // what the error says beside the reason; "" means that the node is schedulable again
	}{
		"as before":    {change: func(*fake) {}},
		"off":          {func(f *fake) { f.down["worker-1"] = errors.New("no route") }, "its Talos API does not answer: no route"},
		"shuts down":   {func(f *fake) { f.machines["worker-1"].Stage = "shutting down" }, "the machine is shutting down"},
		"another boot": {func(f *fake) { f.machines["worker-1"].Boot = "2" }, "it has rebooted"},
		"kubelet is sick": {change: func(f *fake) {
			f.machines["worker-1"].Services["kubelet"] = talosapi.Service{State: talosapi.Running, Known: true}
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, 2, "2")
			q.ask(t, "worker-1")
			require.Equal(t, []string{"worker-1"}, q.began(time.Minute), name)
			q.with(func() { one.change(q.fake) })
			err := q.turns["worker-1"].Fail(t.Context(), errors.New("timeout of the task"))
			require.ErrorContains(t, err, "worker-1: timeout of the task", name)
			assert.Equal(t, one.want != "", q.fake.nodes["worker-1"].Unschedulable, name)
			if one.want != "" {
				require.ErrorContains(t, err, "worker-1 stays cordoned: "+one.want+"; the next run uncordons it once it is healthy", name)
			}
		})
	}
}

func TestEnd_OfANodeThatIsNotBackEndsAllOtherTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, "1")
		q.ask(t, "worker-1", "worker-2")
		require.Equal(t, []string{"worker-1"}, q.began(time.Minute))
		q.with(func() { q.down["worker-1"] = errors.New("no route") })
		require.ErrorContains(t, q.turns["worker-1"].End(t.Context()), "worker-1 is not back, and stays cordoned")
		q.began(time.Minute)
		assert.ErrorContains(t, q.errs["worker-2"], "worker-2 is not changed: the turn of worker-1 has failed")
		assert.True(t, q.fake.nodes["worker-1"].Ours)
	})
}

func TestBegin_ANodeThatWaitsKeepsNoOtherFromMendingTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1, "1")
		q.machines["cp-2"].Services["etcd"] = talosapi.Service{State: "Failed"}
		q.ask(t, "cp-1", "cp-2")
		assert.Equal(t, []string{"cp-2"}, q.began(time.Minute))
		q.with(func() {
			q.machines["cp-2"].Services["etcd"] = talosapi.Service{State: talosapi.Running, Known: true, Healthy: true}
		})
		q.end(t, "cp-2")
		assert.Equal(t, []string{"cp-1"}, q.began(time.Minute))
		q.end(t, "cp-1")
	})
}

func TestBegin_UncordonsWhatAnEarlierRunHasLeftOnceItIsHealthy(t *testing.T) {
	for _, left := range []string{"worker-2", "cp-2"} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, 2, "1")
			q.fake.nodes[left] = KubeNode{Unschedulable: true, Ours: true, Boot: "1"}
			next := map[string]string{"worker-2": "worker-1", "cp-2": "cp-1"}[left]
			q.ask(t, next)
			assert.Empty(t, q.began(time.Minute))
			q.with(func() { q.fake.nodes[left] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Boot: "1"} })
			assert.Equal(t, []string{next}, q.began(time.Minute))
			assert.Equal(t, []string{"uncordon " + left, "cordon " + next}, q.log)
			q.end(t, next)
		})
	}
}

func TestBegin_AControlPlaneThatWasOnlyDeclaredIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1, "1")
		q.with(func() {
			delete(q.fake.nodes, "cp-3")
			q.members = append(q.members[:2], talosapi.Member{ID: 9, Name: "cp-4"})
			q.down["cp-3"] = errors.New("no route")
		})
		q.nodes = append(q.nodes, Node{Name: "cp-4", Role: q.nodes[0].Role, Address: talosapitest.AddressOf("cp-4")})
		q.machines["cp-4"], q.fake.nodes["cp-4"] = q.machines["cp-1"], q.fake.nodes["cp-1"]
		q.engine.Nodes = q.nodes
		q.ask(t, "cp-1")
		assert.Equal(t, []string{"cp-1"}, q.began(time.Minute))
		q.end(t, "cp-1")
	})
}

func TestTake_TheOnlyControlPlaneWithoutAnAPIIsChangedToMendIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		nodes, f.members, f.api = nodes[:1], f.members[:1], errors.New("connection refused")
		c := f.change(nodes, "cp-1")
		c.Act = func(ctx context.Context) error {
			f.with(func() { f.api = nil })
			return f.reboot("cp-1")(ctx)
		}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
		assert.Equal(t, []string{"reboot cp-1"}, f.log)
	})
}

func TestTake_ANodeThatIsNotReadyIsNotDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.nodes["worker-1"] = KubeNode{Boot: "1"}
		f.down["worker-1"] = errors.New("no route")
		c := f.change(nodes, "worker-1")
		c.Act = func(ctx context.Context) error {
			f.with(func() { f.nodes["worker-1"] = KubeNode{Ready: true, Unschedulable: true, Ours: true} })
			return f.reboot("worker-1")(ctx)
		}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
		assert.Empty(t, f.ended)
	})
}
