package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_AppliesToControlPlanesOneAfterTheOther(t *testing.T) {
	r := up(t)
	applies := map[int]mocks.Registration{}
	for i, name := range []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"} {
		applies[i] = r.Resource(t, "infra-"+name+"-apply")
	}
	for i, one := range applies {
		for j, other := range applies {
			assert.Equal(t, i > j, i != j && r.After(one, other), "%s after %s", one.Name, other.Name)
		}
	}
	for _, vm := range r.OfType(typeVM) {
		for _, apply := range applies {
			assert.False(t, r.After(vm, apply), "machines are created in parallel")
		}
	}
}

func TestTalosCluster_UpdatesMachinesAndConfigurationsInTurns(t *testing.T) {
	r := up(t)
	bound := 0
	for _, reg := range r.Resources() {
		hooks := reg.RPC.GetHooks()
		switch reg.Type {
		case typeVM:
			name := strings.TrimSuffix(reg.Name, "-vm")
			assert.Equal(t, []string{name + "-move", name + "-reboot", name + "-vm-turn"}, hooks.GetBeforeUpdate(),
				"an error after the turn has begun would leave it open")
		case typeApply:
			assert.Equal(t, []string{reg.Name + "-turn"}, hooks.GetBeforeUpdate())
			assert.NotContains(t, reg.BeforeCreate, reg.Name+"-turn", "a machine in maintenance mode is no part of the cluster")
		default:
			assert.Empty(t, hooks.GetAfterUpdate(), reg.Name)
			assert.Empty(t, hooks.GetOnError(), reg.Name)
			continue
		}
		assert.Equal(t, []string{reg.Name + "-back"}, hooks.GetAfterUpdate())
		assert.Equal(t, []string{reg.Name + "-failed"}, hooks.GetOnError())
		bound++
	}
	assert.Equal(t, 2*len(allMachines(t)), bound)
	for _, hook := range r.Hooks() {
		if strings.HasSuffix(hook.Name, "-turn") {
			assert.False(t, hook.OnDryRun, "%s would send requests in a preview", hook.Name)
		}
	}
}

func TestTalosCluster_RemembersItsTurnsAfterAllConfigurationsAndBeforeWhatFollows(t *testing.T) {
	recorder := answers(&mocks.Recorder{})
	var after pulumi.ResourceState
	require.NoError(t, recorder.Run(program(arguments(t), func(ctx *pulumi.Context, c *TalosCluster) error {
		return ctx.RegisterComponentResource("test:index:After", "after", &after, pulumi.DependsOn(c.Leaves()))
	})))
	turns := recorder.Resource(t, "infra-turns")
	assert.Equal(t, []string{"infra-turns"}, turns.RPC.GetHooks().GetBeforeUpdate())
	for _, apply := range recorder.OfType(typeApply) {
		assert.True(t, recorder.After(turns, apply), apply.Name)
	}
	assert.True(t, recorder.After(recorder.Resource(t, "after"), turns))
	sums := map[any]bool{}
	for _, node := range allMachines(t) {
		sums[turns.Input("input."+node.Name)] = true
	}
	assert.Len(t, sums, len(allMachines(t)), "each has its own checksum")
	assert.NotContains(t, turns.RPC.String(), keyMaterial)

	changed := up(t, func(c *cluster.Cluster) { workers(c).Cores += 2 }).Resource(t, "infra-turns")
	for _, node := range allMachines(t) {
		path := "input." + node.Name
		assert.Equal(t, node.Role == cluster.Worker, turns.Input(path) != changed.Input(path), node.Name)
	}
}

// calm is a healthy cluster. Its machines do what effects says for a changed configuration, until they have booted with it.
type calm struct {
	mu           sync.Mutex
	nodes        []turn.Node
	bare         bool // no machine has a configuration
	unbootstraps bool // etcd does not run
	silent       error
	effects      live.Effect
	answersAfter int   // questions that are not answered before the effect is
	refuses      error // answer to a reboot
	boots        map[string]int
	staged       map[string]bool
	log          []string
}

func (c *calm) did(what, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what+" "+node)
}

func (c *calm) Machine(_ context.Context, node turn.Node) (turn.Machine, error) {
	etcd := turn.Service{State: "Running", Known: true, Healthy: true}
	if c.unbootstraps {
		etcd = turn.Service{State: "Preparing"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return turn.Machine{Boot: fmt.Sprint(1 + c.boots[node.Name]), Stage: "running", Services: map[string]turn.Service{"etcd": etcd}}, c.silent
}

func (c *calm) Members(context.Context, turn.Node) (members []turn.Member, err error) {
	for i, node := range c.nodes {
		if node.Role == cluster.ControlPlane {
			members = append(members, turn.Member{ID: uint64(i), Name: node.Name})
		}
	}
	return members, nil
}

func (c *calm) Nodes(context.Context) (map[string]turn.KubeNode, error) {
	all := map[string]turn.KubeNode{}
	for _, node := range c.nodes {
		cordoned := slices.Contains(c.log, "cordon "+node.Name) && !slices.Contains(c.log, "uncordon "+node.Name)
		all[node.Name] = turn.KubeNode{Ready: true, Ours: cordoned, Unschedulable: cordoned}
	}
	return all, c.silent
}

func (c *calm) Cordon(_ context.Context, node string) error {
	c.did("cordon", node)
	return nil
}

func (c *calm) Uncordon(_ context.Context, node string) error {
	c.did("uncordon", node)
	return nil
}

func (c *calm) Forget(_ context.Context, node string) error {
	c.did("forget", node)
	return nil
}

func (c *calm) Pods(context.Context, string) ([]turn.Pod, error)    { return nil, nil }
func (c *calm) Evict(context.Context, turn.Pod) error               { return nil }
func (c *calm) Configured(context.Context, turn.Node) (bool, error) { return !c.bare, c.silent }

func (c *calm) Effect(_ context.Context, node turn.Node, _ string) (live.Effect, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.answersAfter > 0:
		c.answersAfter--
		return live.Unknown, "", errors.New("no route")
	case c.staged[node.Name] && c.boots[node.Name] > 0:
		return live.KeepsRunning, "", nil
	}
	return c.effects, "machine.files", nil
}

func (c *calm) Stage(_ context.Context, node turn.Node, _ string) error {
	c.did("stage", node.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.staged == nil {
		c.staged, c.boots = map[string]bool{}, map[string]int{}
	}
	c.staged[node.Name] = true
	return nil
}

func (c *calm) Reboot(_ context.Context, node turn.Node) error {
	if c.refuses != nil {
		return c.refuses
	}
	c.did("reboot", node.Name)
	time.AfterFunc(20*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.boots[node.Name]++
	})
	return nil
}

func turnsOf(t *testing.T, on *calm) *turns {
	on.nodes = turn.NodesOf(allMachines(t))
	return &turns{Owner: machines.Owner{Cluster: new(cluster.Cluster)}, dial: func(context.Context) (access, error) { return on, nil }, nodes: on.nodes, open: map[string]*turn.Turn{},
		say: func(line string) { t.Log(line) }}
}

func drains(_ context.Context, _ access, node turn.Node) (turn.Change, bool, error) {
	return turn.Change{Node: node, Drains: true}, true, nil
}

func TestTurns_BeginBeforeAnUpdateAndEndAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{}
		turns := turnsOf(t, on)
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], drains))
		assert.Equal(t, []string{"cordon infra-cp-1"}, on.log)
		require.NoError(t, turns.end(t.Context(), "urn:other"), "its update took no turn")
		require.NoError(t, turns.end(t.Context(), "urn:1"))
		assert.Equal(t, []string{"cordon infra-cp-1", "uncordon infra-cp-1"}, on.log)
		require.NoError(t, turns.end(t.Context(), "urn:1"))
	})
}

func TestTurns_AFailedUpdateEndsTheTurnsOfAllOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{}
		turns := turnsOf(t, on)
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], drains))
		next := make(chan error)
		go func() { next <- turns.begin(t.Context(), "urn:2", on.nodes[1], drains) }()
		synctest.Wait()
		turns.fail(t.Context(), "urn:1", []string{"the task has failed"})
		assert.Equal(t, []string{"cordon infra-cp-1", "uncordon infra-cp-1"}, on.log)
		require.ErrorContains(t, <-next, "infra-cp-2 is not changed: the turn of infra-cp-1 has failed")
		require.ErrorContains(t, turns.release(t.Context()), "the turn of infra-cp-1 has failed")
	})
}

func TestTurns_NothingWaitsWhereThereIsNothingToInterrupt(t *testing.T) {
	for name, on := range map[string]*calm{"no configuration yet": {bare: true}, "no etcd yet": {unbootstraps: true}} {
		synctest.Test(t, func(t *testing.T) {
			turns, start := turnsOf(t, on), time.Now()
			for i, node := range on.nodes {
				require.NoError(t, turns.begin(t.Context(), fmt.Sprint(i), node, drains), name)
			}
			assert.Zero(t, time.Since(start), name)
			assert.Empty(t, on.log, name)
		})
	}
}

func TestTurns_WaitAsLongAsDeclaredUntilANodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{}
		turns := turnsOf(t, on)
		turns.Lifecycle.ReturnTimeout.Duration = 45 * time.Minute
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], drains))
		on.silent = errors.New("no route")
		start := time.Now()
		require.ErrorContains(t, turns.end(t.Context(), "urn:1"), "infra-cp-1 is not back, and stays cordoned")
		assert.InDelta(t, 45, time.Since(start).Minutes(), 1)
	})
}

func TestTurns_OfASilentClusterAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{silent: errors.New("no route")}
		turns := turnsOf(t, on)
		require.ErrorContains(t, turns.begin(t.Context(), "urn:1", on.nodes[0], drains), "the cluster cannot spare it")
		require.ErrorContains(t, turns.release(t.Context()), "the turn of infra-cp-1 has failed")
	})
}

func TestConfigures_TakesTheTurnThatTheChangeNeeds(t *testing.T) {
	for effect, want := range map[live.Effect]struct{ takes, drains, reboots, acts, checks bool }{
		live.Reboots:      {takes: true, drains: true, reboots: true},
		live.NeedsReboot:  {takes: true, drains: true, reboots: true, acts: true},
		live.RestartsCRI:  {takes: true, checks: true},
		live.Unknown:      {takes: true, drains: true},
		live.KeepsRunning: {}, live.Refused: {},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{effects: effect}
			turns := turnsOf(t, on)
			require.NoError(t, turns.connect(t.Context()))
			change, takes, err := turns.configures("machine: {}")(t.Context(), on, on.nodes[3])
			require.NoError(t, err)
			assert.Equal(t, want.takes, takes, effect)
			if takes {
				assert.Equal(t, on.nodes[3], change.Node, effect)
				assert.Equal(t, []bool{want.drains, !want.drains, want.reboots, want.acts, want.checks},
					[]bool{change.Drains, change.Quiet, change.Reboots, change.Act != nil, change.Check != nil}, effect)
			}
			assert.Empty(t, on.log, "nothing is changed yet")
		})
	}
}

func TestConfigures_RefusesWhatOnlyAnotherMachineCanHave(t *testing.T) {
	on := &calm{effects: live.NeedsMachine}
	turns := turnsOf(t, on)
	require.EqualError(t, turns.begin(t.Context(), "urn:1", on.nodes[3], turns.configures("machine: {}")),
		"infra-worker-1: machine.files of a machine does not change; raise its generation, which replaces the machine")
	assert.Empty(t, on.log)
	require.NoError(t, turns.engine.Failed(), "no turn has begun")
}

func TestConfigures_AsksANodeAgainThatMayStillBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.KeepsRunning, answersAfter: 30}
		turns := turnsOf(t, on)
		require.NoError(t, turns.connect(t.Context()))
		_, takes, err := turns.configures("machine: {}")(t.Context(), on, on.nodes[3])
		require.NoError(t, err)
		assert.False(t, takes)
	})
}

func TestTurns_ANodeBootsWithItsConfigurationBeforeTheUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot}
		turns := turnsOf(t, on)
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")))
		assert.Equal(t, []string{"cordon infra-cp-1", "stage infra-cp-1", "reboot infra-cp-1"}, on.log)
		assert.Equal(t, 1, on.boots["infra-cp-1"], "it is back before the provider applies")
		require.NoError(t, turns.end(t.Context(), "urn:1"))
		assert.Equal(t, "uncordon infra-cp-1", on.log[3])
	})
}

func TestTurns_AnUpThatEndedInATurnIsFinishedByTheNext(t *testing.T) {
	for name, one := range map[string]struct {
		begun func(context.Context, *turns, *calm, turn.Node) // what the run before has done
		want  []string
	}{
		"after the configuration was staged": {func(ctx context.Context, _ *turns, on *calm, node turn.Node) { _ = on.Stage(ctx, node, "") },
			[]string{"stage infra-cp-1", "cordon infra-cp-1", "stage infra-cp-1", "reboot infra-cp-1"}},
		"after the reboot": {func(ctx context.Context, turns *turns, on *calm, node turn.Node) {
			_ = turns.begin(ctx, "urn:1", node, turns.configures("machine: {}"))
		}, []string{"cordon infra-cp-1", "stage infra-cp-1", "reboot infra-cp-1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{effects: live.NeedsReboot}
			one.begun(t.Context(), turnsOf(t, on), on, on.nodes[0])
			next := turnsOf(t, on)
			require.NoError(t, next.begin(t.Context(), "urn:1", on.nodes[0], next.configures("machine: {}")), name)
			assert.Equal(t, one.want, on.log, name)
			require.NoError(t, next.end(t.Context(), "urn:1"))
			require.NoError(t, next.release(t.Context()))
			assert.Equal(t, "uncordon infra-cp-1", on.log[len(one.want)], name)
		})
	}
}

func TestTurns_WithoutTheRebootNothingIsUpdatedAndTheNodeIsSchedulable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot, refuses: errors.New("locked")}
		turns := turnsOf(t, on)
		require.EqualError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")), "infra-cp-1: locked")
		assert.Equal(t, []string{"cordon infra-cp-1", "stage infra-cp-1", "uncordon infra-cp-1"}, on.log)
		turns.fail(t.Context(), "urn:1", []string{"the hook has failed"})
		assert.Len(t, on.log, 3, "its turn is over already")
		require.ErrorContains(t, turns.begin(t.Context(), "urn:2", on.nodes[1], turns.configures("machine: {}")),
			"the turn of infra-cp-1 has failed")
	})
}

func TestTurns_ANodeOfAClusterWithoutEtcdRebootsAtOnceToBeMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot, unbootstraps: true}
		turns := turnsOf(t, on)
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")))
		assert.Equal(t, []string{"stage infra-cp-1", "reboot infra-cp-1"}, on.log)
		assert.Equal(t, 1, on.boots["infra-cp-1"])
		require.NoError(t, turns.end(t.Context(), "urn:1"))
		assert.Len(t, on.log, 2)
	})
}

func TestAnnouncement_SaysWhoRebootsWhyAndInWhichOrder(t *testing.T) {
	all := allMachines(t)
	declared := arguments(t).Cluster
	assert.Equal(t, "infra-cp-1 reboots for its changed cpu, memory: after its turn has come it is cordoned, drained, changed and uncordoned "+
		"once it is back (control planes go first, one at a time)", announcement(declared, all[0], []string{"cpu", "memory"}))
	assert.Contains(t, announcement(declared, all[3], []string{"memory"}), "(after the control planes, 1 at a time)")
	declared = arguments(t, func(c *cluster.Cluster) { c.NodePools[0].Nodes = c.NodePools[0].Nodes[:1] }).Cluster
	assert.Contains(t, announcement(declared, all[0], []string{"memory"}), "it is the only control plane, so the Kubernetes API is away meanwhile")
}
