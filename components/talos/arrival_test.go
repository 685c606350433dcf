package talos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/internal/machines"
)

// Answers of machines to a connection.
var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	errNoRoute = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
)

// comingMachine is a machine that answers as answer says, by the time since its last start.
type comingMachine struct {
	old    bool // an earlier run has created it
	answer func(boot int, since time.Duration) error
	reset  error // what a reset ends with

	boots int
	since time.Time
	said  []string
}

func (m *comingMachine) arrival(t *testing.T) arrival {
	m.since = time.Now()
	return arrival{
		Machine: machines.Machine{
			Node: allMachines(t)[0], New: func() bool { return !m.old },
			Reset: func(context.Context) error {
				if m.reset == nil {
					m.boots, m.since = m.boots+1, time.Now()
				}
				return m.reset
			},
		},
		knock: func(_ context.Context, address string) error {
			assert.Equal(t, "10.25.11.11", address)
			return m.answer(m.boots, time.Since(m.since))
		},
		say: func(line string) { m.said = append(m.said, line) },
	}
}

// boots is the answer of a machine that has its address after half a minute, and its API after another one.
func boots(_ int, since time.Duration) error {
	switch {
	case since < 30*time.Second:
		return errNoRoute
	case since < time.Minute:
		return errRefused
	}
	return nil
}

// hangs is the answer of a machine of which the first boots hang.
func hangs(times int) func(int, time.Duration) error {
	return func(boot int, since time.Duration) error {
		if err := boots(boot, since); err != nil || boot >= times {
			return err
		}
		return errRefused
	}
}

func TestArrival_AMachineThatBootsIsNotReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &comingMachine{answer: boots}
		require.NoError(t, m.arrival(t).await(t.Context()))
		assert.Zero(t, m.boots)
	})
}

func TestArrival_AMachineWhoseBootHangsIsResetAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, start := &comingMachine{answer: hangs(1)}, time.Now()
		require.NoError(t, m.arrival(t).await(t.Context()))
		assert.Equal(t, 1, m.boots)
		assert.Contains(t, strings.Join(m.said, "\n"), "infra-cp-1: has its address and has refused connections to Talos's API for 2m0s")
		assert.Less(t, time.Since(start), closedLimit+2*time.Minute)
	})
}

func TestArrival_AMachineWhoseBootHangsAgainIsResetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &comingMachine{answer: hangs(mostResets)}
		require.NoError(t, m.arrival(t).await(t.Context()))
		assert.Equal(t, mostResets, m.boots)
	})
}

func TestArrival_ARunThatHasResetAMachineOftenEnoughFailsAndSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &comingMachine{answer: hangs(9)}
		err := m.arrival(t).await(t.Context())
		require.ErrorContains(t, err, "after 3 resets: infra-cp-1: has its address 10.25.11.11, and refuses connections to Talos's API")
		require.ErrorContains(t, err, "reset the machine by hand, and run up again")
		require.ErrorContains(t, err, "; or another device has this address: in its network, ip neigh show 10.25.11.11 must show "+
			"bc:24:11:00:01:11", "a printer refuses connections, too")
		assert.Equal(t, mostResets, m.boots)
	})
}

// The step that asks all nodes what they run comes before the first configuration. While no control plane answers, it waits in vain.
func TestArrival_NewMachinesAreAwaitedTogetherBeforeTheStepThatAsksThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		one, other := &comingMachine{answer: hangs(1)}, &comingMachine{answer: hangs(1)}
		require.NoError(t, awaitAll(t.Context(), []arrival{one.arrival(t), other.arrival(t)}))
		assert.Equal(t, []int{1, 1}, []int{one.boots, other.boots})
		assert.Less(t, time.Since(start), closedLimit+2*time.Minute, "they are reset at the same time")
	})
	var made []machines.Machine
	for i, node := range allMachines(t) { // three control planes and two workers; the second is of an earlier run
		made = append(made, machines.Machine{Node: node, New: func() bool { return i != 1 }})
	}
	var awaited []string
	for _, machine := range newControlPlanes(made) {
		awaited = append(awaited, machine.Node.Name)
	}
	assert.Equal(t, []string{"infra-cp-1", "infra-cp-3"}, awaited, "a worker that does not answer keeps up nobody else")
	hooks := up(t).Resource(t, "infra-upgrade").RPC.GetHooks()
	assert.Equal(t, []string{"infra-upgrade-new"}, hooks.GetBeforeCreate())
	assert.Equal(t, []string{"infra-upgrade-new"}, hooks.GetBeforeUpdate(), "another run goes on after one that failed")
}

// A machine that an earlier run has created may be installing.
func TestArrival_AMachineOfAnEarlierRunIsNeverReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &comingMachine{old: true, answer: hangs(9)}
		err := m.arrival(t).await(t.Context())
		require.ErrorContains(t, err, "infra-cp-1: has its address 10.25.11.11, and refuses connections to Talos's API")
		assert.Zero(t, m.boots)
	})
}

func TestArrival_AMachineThatCannotBeReachedIsNotReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, start := &comingMachine{answer: func(int, time.Duration) error { return errNoRoute }}, time.Now()
		require.ErrorContains(t, m.arrival(t).await(t.Context()), "infra-cp-1: cannot be reached at 10.25.11.11")
		assert.Zero(t, m.boots)
		assert.Equal(t, silentLimit, time.Since(start))
	})
}

// A host with too much to do pauses its machines.
func TestArrival_OnlyAnUninterruptedRefusalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &comingMachine{answer: func(_ int, since time.Duration) error {
			switch {
			case since > 8*time.Minute:
				return nil
			case since%(closedLimit-10*time.Second) < 5*time.Second:
				return errNoRoute
			}
			return errRefused
		}}
		require.NoError(t, m.arrival(t).await(t.Context()))
		assert.Zero(t, m.boots)
	})
}

func TestArrival_SaysWhatForbidsAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := errors.New("proxmox: POST nodes/pve1/qemu/1111/status/reset: 403 Permission check failed (/vms/1111, VM.PowerMgmt)")
		m := &comingMachine{answer: hangs(9), reset: forbidden}
		err := m.arrival(t).await(t.Context())
		require.ErrorIs(t, err, forbidden)
		require.ErrorContains(t, err, "infra-cp-1: its boot hangs before Talos's API, and it cannot be reset")
	})
}

func TestArrival_AnInterruptEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("interrupted"))
		defer cancel()
		m := &comingMachine{answer: func(int, time.Duration) error { return errRefused }}
		require.ErrorContains(t, m.arrival(t).await(ctx), "interrupted")
		assert.Zero(t, m.boots)
	})
}

func TestTalosCluster_AwaitsEachMachineBeforeItsFirstConfiguration(t *testing.T) {
	r := up(t)
	for _, apply := range r.OfType(typeApply) {
		assert.Equal(t, []string{apply.Name + "-first"}, apply.BeforeCreate)
	}
	for _, hook := range r.Hooks() {
		if strings.HasSuffix(hook.Name, "-first") {
			assert.False(t, hook.OnDryRun, "%s would send requests in a preview", hook.Name)
		}
	}
}
