package talos

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
)

func TestMachineUpdate_ReachesWhatIsDeclaredAlsoAfterAnUpdateThatHasFailedHalfWay(t *testing.T) {
	for name, one := range map[string]struct {
		changed, grows []string
		before, after  machines.Power
		reboots        bool // the provider reboots the VM
		want           []string
	}{
		"nothing that reboots": {},
		"a bigger disk":        {changed: []string{"disks"}, grows: []string{"scsi0"}, want: []string{"cordon", "reboot", "uncordon"}},
		"rebooted by the provider": {
			changed: []string{"disks"}, grows: []string{"scsi0"}, reboots: true, want: []string{"cordon", "uncordon"},
		},
		"a new disk":          {changed: []string{"disks"}, want: []string{"cordon", "uncordon"}},
		"half-way, and again": {before: waits("memory"), after: waits("memory"), want: []string{"cordon", "restart", "uncordon"}},
		"both": {
			changed: []string{"disks"}, grows: []string{"scsi0"}, after: waits("cores"), want: []string{"cordon", "restart", "uncordon"},
		},
		"off, and started by the provider": {changed: []string{"memory"}, before: machines.Power{Off: true}},
		"off, and again":                   {before: machines.Power{Off: true}, after: machines.Power{Off: true}, want: []string{"restart"}},
		"off only after the update":        {after: machines.Power{Off: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{boots: map[string]int{}}
			turns, power := turnsOf(t, on), one.before
			cluster.SetDefaults(&turns.declared.TurnLimits)
			update := &machineUpdate{turns: turns, Update: machines.Update{
				Node: allMachines(t)[0], Power: func(context.Context) (machines.Power, error) { return power, nil },
				Restart: func(ctx context.Context) error {
					on.did("restart", "infra-cp-1")
					on.with(func() { on.boots["infra-cp-1"]++ })
					return nil
				},
			}}
			if change := update.nodeChange(t.Context(), one.changed, one.grows, nil); change != nil {
				require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], change), name)
			}
			power = one.after
			if one.reboots {
				on.boots["infra-cp-1"]++
			}
			require.NoError(t, turns.end(t.Context(), "urn:1"), name)
			require.NoError(t, update.start(t.Context()), name)
			var did []string
			for _, line := range on.log {
				did = append(did, strings.TrimSuffix(line, " infra-cp-1"))
			}
			assert.Equal(t, one.want, did, name)
		})
	}
}

// The hypervisor would take the disk out of the machine. A drain detaches volumes; without one, nothing does.
func TestMachineUpdate_IsRefusedWhileAForeignDiskIsAttached(t *testing.T) {
	for name, one := range map[string]struct {
		power    machines.Power
		lost     bool // the cluster does not run
		detached bool // by the drain
		says     string
		want     []string
	}{
		"detached by the drain": {detached: true, want: []string{"cordon infra-cp-1"}},
		"stays": {says: "infra-cp-1: infra-cp-1's volumes: gave up after 5m0s (last: has scsi1)",
			want: []string{"cordon infra-cp-1", "uncordon infra-cp-1"}},
		"the machine is off":       {power: machines.Power{Off: true}, says: "infra-cp-1: has scsi1"},
		"the cluster does not run": {lost: true, says: "infra-cp-1: has scsi1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{unbootstraps: one.lost}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			update := &machineUpdate{turns: turns, Update: machines.Update{
				Node: allMachines(t)[0], Power: func(context.Context) (machines.Power, error) { return one.power, nil },
			}}
			change := update.nodeChange(t.Context(), []string{"disks"}, nil, func(context.Context) string {
				if one.detached && len(on.log) > 0 {
					return ""
				}
				return "has scsi1"
			})
			err := turns.begin(t.Context(), "urn:1", on.nodes[0], change)
			if one.says == "" {
				require.NoError(t, err, name)
			} else {
				require.EqualError(t, err, one.says, name)
			}
			assert.Equal(t, one.want, on.log, name)
		})
	}
}

func TestRelease_CompletesAnUpdateOfAVMThatARefreshHasHidden(t *testing.T) {
	for name, one := range map[string]struct {
		stays  bool // the changes wait also after a restart
		silent bool // no API server answers
		want   []string
		says   string
	}{
		"restarted": {want: []string{"cordon infra-cp-2", "restart infra-cp-2", "uncordon infra-cp-2",
			"cordon infra-worker-1", "restart infra-worker-1", "uncordon infra-worker-1"}},
		"in vain": {stays: true, want: []string{"cordon infra-cp-2", "restart infra-cp-2"},
			says: "infra-cp-2: changes of its VM still wait after a restart: memory\ninfra-cp-2 stays cordoned: it has rebooted"},
		"without an API server": {silent: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{boots: map[string]int{}}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			waiting := map[string]machines.Power{"infra-worker-1": waits("memory"), "infra-cp-2": waits("memory")}
			for _, node := range allMachines(t) {
				turns.vms = append(turns.vms, &machineUpdate{turns: turns, Update: machines.Update{
					Node: node, Power: func(context.Context) (machines.Power, error) { return waiting[node.Name], nil },
					Restart: func(context.Context) error {
						on.did("restart", node.Name)
						on.with(func() { on.boots[node.Name]++ })
						if !one.stays {
							delete(waiting, node.Name)
						}
						return nil
					},
				}})
			}
			if one.silent {
				on.silent = errors.New("no route")
			}
			err := turns.release(t.Context())
			if one.says == "" {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, one.says, name)
			}
			assert.Equal(t, one.want, on.log, name)
		})
	}
}

// The state has the bigger disk: an update has failed after it, or the run has ended before the reboot.
func TestRelease_RebootsANodeWhoseVolumeWaitsForABiggerDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{boots: map[string]int{}, grows: []string{"infra-worker-1", "infra-worker-2", "infra-cp-2"}}
		turns := turnsOf(t, on)
		cluster.SetDefaults(&turns.declared.TurnLimits)
		for _, node := range allMachines(t) {
			power := machines.Power{Off: node.Name == "infra-worker-2"}
			turns.vms = append(turns.vms, &machineUpdate{turns: turns, Update: machines.Update{
				Node: node, Power: func(context.Context) (machines.Power, error) { return power, nil },
			}})
		}
		require.NoError(t, turns.release(t.Context()))
		assert.Equal(t, []string{"cordon infra-cp-2", "reboot infra-cp-2", "uncordon infra-cp-2",
			"cordon infra-worker-1", "reboot infra-worker-1", "uncordon infra-worker-1"}, on.log, "a stopped VM grows when it starts")
		require.NoError(t, turns.release(t.Context()))
		assert.Len(t, on.log, 6)
	})
}

// Talos does not know a new network card of a running VM. Who reads that the node does not answer must learn what to do about it.
func TestMachineUpdate_AfterWhichTheNodeIsSilentSaysWhatBringsItBack(t *testing.T) {
	const hint = "Talos knows its new MAC address only after a reboot"
	for _, back := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{boots: map[string]int{}}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			turns.Lifecycle.TurnLimits = turns.declared.TurnLimits
			update := &machineUpdate{turns: turns, silent: hint, Update: machines.Update{
				Node: allMachines(t)[0], Power: func(context.Context) (machines.Power, error) { return machines.Power{}, nil },
			}}
			change := update.nodeChange(t.Context(), []string{"networkDevices"}, nil, nil)
			require.NoError(t, turns.begin(t.Context(), "urn:1", on.nodes[0], change))
			on.with(func() { on.silent = errors.New("no route") })
			if back {
				time.AfterFunc(10*time.Minute, func() { on.with(func() { on.silent = nil }) })
			}
			var said []string
			turns.say = func(line string) { said = append(said, line) }
			err := turns.end(t.Context(), "urn:1")
			assert.Contains(t, strings.Join(said, "\n"), "its Talos API does not answer: no route; "+hint, "while it waits")
			if back {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "infra-cp-1 stays cordoned: infra-cp-1's answer: gave up after")
			require.ErrorContains(t, err, "its Talos API does not answer: no route; "+hint)
		})
	}
}

func waits(options ...string) machines.Power { return machines.Power{Waiting: options} }

// What is not known keeps no update from happening, because the update itself says what is wrong.
func TestMachineUpdate_WithoutAnAnswerTakesItsTurnForTheChangesOnly(t *testing.T) {
	update := &machineUpdate{turns: turnsOf(t, &calm{}), Update: machines.Update{
		Node: allMachines(t)[0], Power: func(context.Context) (machines.Power, error) { return machines.Power{}, errors.New("no route") },
	}}
	assert.Nil(t, update.nodeChange(t.Context(), nil, nil, nil))
	assert.NotNil(t, update.nodeChange(t.Context(), []string{"memory"}, nil, nil))
}

// A node may need more memory because it does not answer any more.
func TestMachineUpdate_AsksNoMachineForAnAgentWhoseChannelStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &calm{hangs: true}
		turns := turnsOf(t, on)
		cluster.SetDefaults(&turns.declared.TurnLimits)
		update := &machineUpdate{turns: turns, Update: machines.Update{
			Node: allMachines(t)[0], Power: func(context.Context) (machines.Power, error) { return machines.Power{}, nil },
		}}
		for _, changed := range []string{"memory", "agent"} {
			start := time.Now()
			_, takes, err := update.nodeChange(t.Context(), []string{changed}, nil, nil)(t.Context(), on, on.nodes[0])
			require.NoError(t, err)
			assert.True(t, takes)
			assert.Equal(t, changed == "agent", time.Since(start) > 0, changed)
			assert.LessOrEqual(t, time.Since(start), lookTimeout)
		}
	})
}

// A Talos with the agent does not finish a boot without the agent's channel, so that an upgrade to one without the agent is never reached.
func TestMachineUpdate_TakesNoChannelFromAGuestAgentThatRuns(t *testing.T) {
	for name, one := range map[string]struct {
		changed, waiting, runs, declared []string
		says                             string
	}{
		"a channel that goes": {changed: []string{"agent"}, runs: []string{cluster.GuestAgentService},
			says: "talos.extensions: infra-cp-1 runs siderolabs/qemu-guest-agent, and its Talos would wait at each boot"},
		"one that goes at the next start": {changed: []string{"memory"}, waiting: []string{"agent"}, runs: []string{cluster.GuestAgentService},
			says: "talos.extensions: infra-cp-1 runs siderolabs/qemu-guest-agent"},
		"of an agent that does not run any more": {changed: []string{"agent"}},
		"a channel that comes": {changed: []string{"agent"}, declared: []string{"siderolabs/qemu-guest-agent"},
			runs: []string{cluster.GuestAgentService}},
		"a channel that stays": {changed: []string{"memory"}, runs: []string{cluster.GuestAgentService}},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &calm{runs: one.runs}
			turns := turnsOf(t, on)
			cluster.SetDefaults(&turns.declared.TurnLimits)
			turns.Cluster.Talos.Extensions = one.declared
			update := &machineUpdate{turns: turns, Update: machines.Update{
				Node: allMachines(t)[0], Power: func(context.Context) (machines.Power, error) { return waits(one.waiting...), nil },
			}}
			err := turns.begin(t.Context(), "urn:1", on.nodes[0], update.nodeChange(t.Context(), one.changed, nil, nil))
			if one.says == "" {
				require.NoError(t, err, name)
				return
			}
			require.ErrorContains(t, err, one.says, name)
			assert.Empty(t, on.log, "no node is cordoned")
			require.NoError(t, turns.engine.Failed(), "no turn has begun")
		})
	}
}

func TestAnnouncement_SaysWhoRebootsWhyAndInWhichOrder(t *testing.T) {
	all := allMachines(t)
	declared := arguments(t).Cluster
	assert.Equal(t, "infra-cp-1 may reboot for its changed cpu, memory: after its turn has come it is cordoned, drained, changed and "+
		"uncordoned once it is back (control planes go first, one at a time)", announcement(declared, all[0], []string{"cpu", "memory"}))
	assert.Contains(t, announcement(declared, all[3], []string{"memory"}), "(after the control planes, 1 at a time)")
	declared = arguments(t, func(c *cluster.Cluster) { c.NodePools[0].Nodes = c.NodePools[0].Nodes[:1] }).Cluster
	assert.Contains(t, announcement(declared, all[0], []string{"memory"}),
		"it is the only control plane, so the Kubernetes API is away meanwhile")
}
