package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
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
			assert.Equal(t, []string{name + "-disks", name + "-move", name + "-reboot", name + "-vm-turn"}, hooks.GetBeforeUpdate(),
				"an error after the turn has begun would leave it open")
		case typeApply:
			assert.Equal(t, []string{reg.Name + "-turn"}, hooks.GetBeforeUpdate())
			assert.NotContains(t, reg.BeforeCreate, reg.Name+"-turn", "a machine in maintenance mode is no part of the cluster")
		default:
			assert.Empty(t, hooks.GetAfterUpdate(), reg.Name)
			assert.Empty(t, hooks.GetOnError(), reg.Name)
			continue
		}
		after := []string{reg.Name + "-back"}
		if reg.Type == typeVM {
			after = append(after, strings.TrimSuffix(reg.Name, "-vm")+"-start")
		}
		assert.Equal(t, after, hooks.GetAfterUpdate())
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
	assert.Contains(t, turns.RPC.GetHooks().GetBeforeUpdate(), "infra-turns")
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

func turnsOf(t *testing.T, on *calm) *turns {
	on.nodes = turn.NodesOf(allMachines(t))
	return &turns{
		Owner: machines.Owner{Cluster: new(cluster.Cluster)}, declared: turn.Declared{Target: turn.Target{Nodes: on.nodes}},
		dial: func(context.Context) (access, error) { return on, nil }, open: map[string]*turn.Turn{},
		say: func(line string) { t.Log(line) },
	}
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
			if on.bare {
				assert.Zero(t, time.Since(start), name)
			}
			assert.LessOrEqual(t, time.Since(start), turn.SilentTimeout, "%s: etcd is awaited once", name)
			assert.Empty(t, on.log, name)
		})
	}
}

func TestTurns_WaitAsLongAsDeclaredUntilANodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{}
		turns := turnsOf(t, on)
		turns.declared.ReturnTimeout.Duration = 45 * time.Minute
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
		turns, start := turnsOf(t, on), time.Now()
		require.ErrorContains(t, turns.begin(t.Context(), "urn:1", on.nodes[0], drains), "the cluster cannot spare it")
		assert.Equal(t, turn.SpareTimeout, time.Since(start), "a silent control plane may run etcd, whatever else is awaited")
		require.ErrorContains(t, turns.release(t.Context()), "the turn of infra-cp-1 has failed")
	})
}

func TestConfigures_TakesTheTurnThatTheChangeNeeds(t *testing.T) {
	for effect, want := range map[live.Effect]struct{ takes, drains, reboots, acts, checks bool }{
		live.Reboots:                   {takes: true, drains: true, reboots: true},
		live.NeedsReboot:               {takes: true, drains: true, reboots: true, acts: true},
		live.RestartsCRI:               {takes: true, checks: true},
		live.RestartsPods:              {takes: true, acts: true, checks: true},
		live.MayIsolate:                {takes: true, acts: true, checks: true},
		live.MayIsolateAndRestartsPods: {takes: true, acts: true, checks: true},
		live.KeepsRunning:              {takes: true, checks: true},
		live.Unknown:                   {takes: true, drains: true},
		live.Unchanged:                 {},
		live.Refused:                   {},
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

func TestTurns_AQuietChangeReachesTheNextNodeOnceTheFirstIsWellWithIt(t *testing.T) {
	for _, effect := range []live.Effect{live.KeepsRunning, live.RestartsPods} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{effects: effect}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")))
			on.with(func() { on.static = "kube-apiserver is not Ready" })
			next := make(chan error, 1)
			go func() {
				next <- turns.begin(t.Context(), "urn:2", on.nodes[3], turns.configures("machine: {}"))
			}()
			go func() {
				time.Sleep(time.Minute)
				assert.Empty(t, next, "the first one is not well yet")
				on.with(func() { on.static = "" })
			}()
			require.NoError(t, turns.end(t.Context(), "urn:1"))
			require.NoError(t, <-next)
			require.NoError(t, turns.end(t.Context(), "urn:2"))
			want := map[live.Effect][]string{live.RestartsPods: {"step aside infra-cp-1"}}[effect]
			assert.Equal(t, want, on.log, "nothing is cordoned")
		})
	}
}

func TestTurns_ANodeTriesAnotherNetworkAndNobodyElseGetsItIfNobodyReachesIt(t *testing.T) {
	for name, isolates := range map[string]error{"reached": nil, "not reached": errors.New("no route")} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{effects: live.MayIsolate, isolates: isolates}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			start := time.Now()
			err := turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}"))
			assert.Equal(t, []string{"try infra-cp-1"}, on.log, name)
			if isolates == nil {
				require.NoError(t, err)
				assert.Less(t, time.Since(start), tryFor/2, "the provider must apply the configuration before it is taken back")
				require.NoError(t, turns.end(t.Context(), "urn:1"))
				return
			}
			require.ErrorContains(t, err, "infra-cp-1: nobody reaches it after the change of machine.files: ")
			require.ErrorContains(t, err, "it takes its former configuration back within 1m0s")
			require.ErrorContains(t, turns.begin(t.Context(), "urn:2", on.nodes[1], turns.configures("machine: {}")),
				"the turn of infra-cp-1 has failed")
		})
	}
}

func TestTurns_ATrialHasTheTimeInWhichAnAPIServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.MayIsolateAndRestartsPods}
		turns := turnsOf(t, on)
		cluster.SetDefaults(&turns.declared.TurnLimits)
		go func() {
			time.Sleep(time.Second)
			on.with(func() { on.static = "kube-apiserver is not Ready" })
			time.Sleep(2 * time.Minute)
			on.with(func() { on.static = "" })
		}()
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")))
		require.Equal(t, []string{"try infra-cp-1"}, on.log, "after another trial, the node would return to that one's configuration")
		require.NoError(t, turns.end(t.Context(), "urn:1"))
	})
}

func TestTurns_WhatANodeHasTakenBackIsNotAppliedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.MayIsolate, sickens: true}
		turns := turnsOf(t, on)
		cluster.SetDefaults(&turns.declared.TurnLimits)
		err := turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}"))
		require.ErrorContains(t, err, "infra-cp-1 is not back: it has taken its former configuration back, without ")
		require.Error(t, turns.engine.Failed())
	})
}

func TestTurns_ANodeThatAQuietChangeBreaksKeepsAllOthersFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.RestartsPods}
		turns := turnsOf(t, on)
		cluster.SetDefaults(&turns.declared.TurnLimits)
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")))
		on.static = "kube-apiserver is not Ready: CrashLoopBackOff"
		require.ErrorContains(t, turns.end(t.Context(), "urn:1"),
			"(last: kube-apiserver is not Ready: CrashLoopBackOff); no other node is changed")
		require.ErrorContains(t, turns.begin(t.Context(), "urn:2", on.nodes[1], turns.configures("machine: {}")),
			"infra-cp-2 is not changed: the turn of infra-cp-1 has failed")
	})
}

func TestConfigures_WhatMayMendANodeWaitsForNoOther(t *testing.T) {
	for name, one := range map[string]struct {
		on      *calm
		awaits  turn.Awaited
		unready bool
	}{
		"a healthy cluster":        {on: &calm{effects: live.RestartsPods}},
		"a broken API server":      {on: &calm{effects: live.RestartsPods, static: "kube-apiserver is not Ready"}, awaits: turn.Nothing},
		"nodes that are not Ready": {on: &calm{effects: live.RestartsPods, unready: true}, unready: true},
		"another network":          {on: &calm{effects: live.MayIsolateAndRestartsPods}},
		"a sysctl":                 {on: &calm{effects: live.KeepsRunning}, awaits: turn.OthersWell},
		"a sysctl of a sick one":   {on: &calm{effects: live.KeepsRunning, sick: true}, awaits: turn.Nothing},
		"a sysctl of an unready one": {
			on: &calm{effects: live.KeepsRunning, unready: true, static: "has no pod"}, awaits: turn.OthersWell, unready: true,
		},
	} {
		turns := turnsOf(t, one.on)
		require.NoError(t, turns.connect(t.Context()))
		change, takes, err := turns.configures("machine: {}")(t.Context(), one.on, one.on.nodes[0])
		require.NoError(t, err)
		assert.Equal(t, []bool{true, true, one.unready}, []bool{takes, change.Quiet, change.Unready}, name)
		assert.Equal(t, one.awaits, change.Awaits, name)
		assert.Equal(t, one.on.effects == live.RestartsPods, change.KeepsEtcd, "%s: Talos runs etcd, and no kubelet", name)
		healthy := turn.Machine{Services: map[string]talosapi.Service{"kubelet": {State: "Running", Known: true, Healthy: true}}}
		problem, err := change.Check(t.Context(), "", healthy, turn.KubeNode{})
		require.NoError(t, err)
		assert.Equal(t, one.on.static != "" && one.on.effects == live.RestartsPods, problem != "", name)
	}
}

func TestConfigures_RefusesWhatOnlyAnotherMachineOrClusterCanHave(t *testing.T) {
	for effect, says := range map[live.Effect]string{
		live.NeedsMachine: "infra-cp-1: machine.files of a machine does not change; raise its generation, which replaces the machine",
		live.NeedsCluster: "infra-cp-1: machine.files; declare the former one, and make another cluster for another range",
	} {
		on := &calm{effects: effect}
		turns := turnsOf(t, on)
		require.EqualError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")), says)
		assert.Empty(t, on.log)
		require.NoError(t, turns.engine.Failed(), "no turn has begun")
	}
}

func TestConfigures_RefusesFeatureGatesThatKubernetesDoesNotKnow(t *testing.T) {
	on := &calm{effects: live.RestartsPods, gates: []string{"cluster.apiServer.extraArgs.feature-gates: A is no feature gate", "b: B"}}
	turns := turnsOf(t, on)
	require.EqualError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")),
		"infra-cp-1: cluster.apiServer.extraArgs.feature-gates: A is no feature gate; b: B; correct the name, or remove it")
	assert.Empty(t, on.log)
	require.NoError(t, turns.engine.Failed(), "no turn has begun")
}

func TestConfigures_AsksANodeAgainThatMayStillBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.KeepsRunning, answersAfter: 30}
		turns := turnsOf(t, on)
		require.NoError(t, turns.connect(t.Context()))
		change, _, err := turns.configures("machine: {}")(t.Context(), on, on.nodes[3])
		require.NoError(t, err)
		assert.True(t, change.Quiet, "it has said that it keeps running")
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
		"after the configuration was staged": {func(ctx context.Context, _ *turns, on *calm, node turn.Node) { _, _ = on.Stage(ctx, node, "") },
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
		assert.Equal(t, []string{"cordon infra-cp-1", "stage infra-cp-1", "unstage infra-cp-1", "uncordon infra-cp-1"}, on.log,
			"its next boot, whenever that is, changes nothing")
		turns.fail(t.Context(), "urn:1", []string{"the hook has failed"})
		assert.Len(t, on.log, 4, "its turn is over already")
		require.ErrorContains(t, turns.begin(t.Context(), "urn:2", on.nodes[1], turns.configures("machine: {}")),
			"the turn of infra-cp-1 has failed")
	})
}

// Otherwise the former configuration, declared again, would differ from nothing that the state has, and would reach no node.
func TestTurns_TheStateGetsAConfigurationThatItsNodeHasRebootedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot, breaks: true}
		turns := turnsOf(t, on)
		turns.declared.ReturnTimeout.Duration = 10 * time.Minute
		require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")), "the provider applies")
		next := make(chan error)
		go func() {
			next <- turns.begin(t.Context(), "urn:2", on.nodes[1], turns.configures("machine: {}"))
		}()
		require.ErrorContains(t, turns.end(t.Context(), "urn:1"), "infra-cp-1 is not back, and stays cordoned")
		require.ErrorContains(t, <-next, "the turn of infra-cp-1 has failed")
		assert.Equal(t, []string{"cordon infra-cp-1", "stage infra-cp-1", "reboot infra-cp-1"}, on.log)
	})
}

func TestTurns_ANodeThatDoesNotSayWhetherItRebootsKeepsWhatWasStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot, refuses: talosapi.ErrSilent}
		turns := turnsOf(t, on)
		err := turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}"))
		require.ErrorContains(t, err, "infra-cp-1: timed out; its next boot may take the changed configuration")
		assert.NotContains(t, on.log, "unstage infra-cp-1")
	})
}

func TestTurns_AConfigurationIsTakenBackIfNobodyKnowsWhetherTheNodeHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot, loses: talosapi.ErrSilent}
		turns := turnsOf(t, on)
		require.EqualError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], turns.configures("machine: {}")), "infra-cp-1: timed out")
		assert.Equal(t, []string{"cordon infra-cp-1", "stage infra-cp-1", "unstage infra-cp-1", "uncordon infra-cp-1"}, on.log)
	})
}

// Such as after a run that was killed while the only control plane was in its turn: otherwise all nodes would reboot at once, undrained.
func TestTurns_ANodeTakesItsTurnIfEtcdStartsSoonOrHasRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{effects: live.NeedsReboot, unbootstraps: true}
		turns := turnsOf(t, on)
		turns.declared.MaxUnavailable = "1"
		worker := on.nodes[len(on.nodes)-1]
		time.AfterFunc(time.Minute, func() { on.with(func() { on.unbootstraps = false }) })
		require.NoError(t, turns.begin(t.Context(), "urn:1", worker, turns.configures("machine: {}")))
		assert.Equal(t, []string{"cordon " + worker.Name, "stage " + worker.Name, "reboot " + worker.Name}, on.log)
		require.NoError(t, turns.end(t.Context(), "urn:1"))

		on.with(func() { on.unbootstraps, on.log = true, nil })
		require.NoError(t, turns.begin(t.Context(), "urn:2", on.nodes[len(on.nodes)-2], drains))
		assert.Equal(t, []string{"cordon " + on.nodes[len(on.nodes)-2].Name}, on.log)
	})
}

// Its control plane boots: it is silent, and then it answers before its etcd runs.
func TestTurns_ANodeTakesItsTurnAlsoIfTheFirstLookFoundASilentControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{silent: errors.New("no route"), unbootstraps: true}
		turns := turnsOf(t, on)
		turns.declared.MaxUnavailable = "1"
		require.NoError(t, turns.connect(t.Context()))
		require.True(t, turns.runs(t.Context()))
		on.with(func() { on.silent = nil })
		time.AfterFunc(time.Minute, func() { on.with(func() { on.unbootstraps = false }) })
		worker := on.nodes[len(on.nodes)-1]
		require.NoError(t, turns.begin(t.Context(), "urn:1", worker, drains))
		assert.Equal(t, []string{"cordon " + worker.Name}, on.log)
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
