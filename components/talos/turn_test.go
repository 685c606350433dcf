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
			assert.Empty(t, reg.BeforeCreate, "a machine in maintenance mode is no part of the cluster")
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

// calm is a healthy cluster. Its machines do what effects says for a changed configuration.
type calm struct {
	mu           sync.Mutex
	nodes        []turn.Node
	bare         bool // no machine has a configuration
	unbootstraps bool // etcd does not run
	silent       error
	effects      live.Effect
	log          []string
}

func (c *calm) did(what, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what+" "+node)
}

func (c *calm) Machine(context.Context, turn.Node) (turn.Machine, error) {
	etcd := turn.Service{State: "Running", Known: true, Healthy: true}
	if c.unbootstraps {
		etcd = turn.Service{State: "Preparing"}
	}
	return turn.Machine{Boot: "1", Stage: "running", Services: map[string]turn.Service{"etcd": etcd}}, c.silent
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
		all[node.Name] = turn.KubeNode{Ready: true, Ours: slices.Contains(c.log, "cordon "+node.Name)}
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

func (c *calm) Pods(context.Context, string) ([]turn.Pod, error)               { return nil, nil }
func (c *calm) Evict(context.Context, turn.Pod) error                          { return nil }
func (c *calm) Configured(context.Context, turn.Node) (bool, error)            { return !c.bare, c.silent }
func (c *calm) Effect(context.Context, turn.Node, string) (live.Effect, error) { return c.effects, nil }

func turnsOf(t *testing.T, on *calm) *turns {
	on.nodes = turn.NodesOf(allMachines(t))
	return &turns{Owner: machines.Owner{Cluster: new(cluster.Cluster)}, dial: func(context.Context) (access, error) { return on, nil }, nodes: on.nodes, open: map[string]*turn.Turn{},
		say: func(line string) { t.Log(line) }}
}

func drains(_ context.Context, _ access, node turn.Node) (turn.Change, bool) {
	return turn.Change{Node: node, Drains: true}, true
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

func TestConfigures_AsksTalosWhetherTheNodeReboots(t *testing.T) {
	for effect, want := range map[live.Effect]struct{ takes, reboots bool }{
		live.Reboots: {true, true}, live.Unknown: {true, false}, live.KeepsRunning: {}, live.Refused: {},
	} {
		on := &calm{effects: effect}
		turns := turnsOf(t, on)
		change, takes := turns.configures("machine: {}")(t.Context(), on, on.nodes[3])
		assert.Equal(t, want.takes, takes, effect)
		if takes {
			assert.Equal(t, turn.Change{Node: on.nodes[3], Drains: true, Reboots: want.reboots}, change, effect)
		}
	}
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
