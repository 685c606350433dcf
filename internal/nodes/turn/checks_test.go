package turn

import (
	"context"
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

// checked returns an engine with a check, which fails while failing returns true.
func (f *fake) checked(t *testing.T, nodes []Node, failing func() bool) *Engine {
	e := f.engine(t, nodes)
	e.Checks = []cluster.Check{{Name: "the databases have a primary"}}
	f.unmet = func() string {
		if failing() {
			return "not so: the databases have a primary"
		}
		return ""
	}
	return e
}

func TestChecks_NoTurnBeginsWhileOneFails(t *testing.T) {
	for _, name := range []string{"worker-1", "cp-1"} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			err := f.checked(t, nodes, func() bool { return true }).Take(t.Context(), f.change(nodes, name))
			require.ErrorContains(t, err, name+" is not changed, because the cluster cannot spare it")
			require.ErrorContains(t, err, "not so: the databases have a primary")
			assert.Empty(t, f.log)
		})
	}
}

func TestChecks_NoSecondTurnBeginsAfterOneThatBreaksThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e := f.checked(t, nodes, func() bool { return f.machines["worker-1"].Boot != "1" })
		err := e.Take(t.Context(), f.change(nodes, "worker-1"))
		require.ErrorContains(t, err, "worker-1 is back, but not all is well with it")
		assert.Equal(t, []string{"cordon worker-1", "reboot worker-1", "uncordon worker-1"}, f.log, "it is schedulable: the pods may need it")
		require.ErrorContains(t, e.Take(t.Context(), f.change(nodes, "worker-2")), "the turn of worker-1 has failed")
	})
}

// What is evicted needs time to start elsewhere.
func TestChecks_OneThatFailsForAWhileIsAwaitedAfterTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		var back time.Time
		e := f.checked(t, nodes, func() bool {
			if f.machines["worker-1"].Boot != "1" && back.IsZero() {
				back = time.Now()
			}
			return !back.IsZero() && time.Since(back) < 5*time.Minute
		})
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "worker-1")))
		assert.GreaterOrEqual(t, time.Since(back), 5*time.Minute)
	})
}

func TestChecks_ANodeThatIsSickIsChangedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.down["worker-1"] = errors.New("no route")
		change := Change{Node: named(nodes, "worker-1"), Act: func(context.Context) error {
			f.with(func() { delete(f.down, "worker-1") })
			return nil
		}}
		require.NoError(t, f.checked(t, nodes, func() bool { return true }).Take(t.Context(), change))
	})
}

// With two workers at once, the first one's absence may be why a check fails.
func TestChecks_OneThatFailsDuringAnotherTurnIsAwaitedAsLongAsThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(3)
		away := false
		e := f.checked(t, nodes, func() bool { return away })
		e.MaxUnavailable = "2"
		e.proven = map[string]bool{"": true}
		slow := Change{Node: named(nodes, "worker-1"), Act: func(context.Context) error {
			f.with(func() { away = true })
			time.Sleep(3 * SpareTimeout)
			f.with(func() { away = false })
			return nil
		}}
		results := make(chan error)
		go func() { results <- e.Take(t.Context(), slow) }()
		time.Sleep(time.Minute)
		go func() { results <- e.Take(t.Context(), f.change(nodes, "worker-2")) }()
		require.NoError(t, <-results)
		require.NoError(t, <-results)
	})
}

// A killed run has evicted a monitor of Ceph. It runs on its own node only, which nothing uncordons but a turn: that of the node itself, or
// of another one that comes before it.
func TestChecks_WhatAKilledRunHasEvictedReturnsBeforeTheNextTurn(t *testing.T) {
	for _, name := range []string{"worker-1", "cp-1", "worker-2"} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			require.NoError(t, f.Cordon(t.Context(), "worker-1"))
			e := f.checked(t, nodes, func() bool { return f.nodes["worker-1"].Unschedulable })
			require.NoError(t, e.Take(t.Context(), f.change(nodes, name)))
			assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1", "cordon " + name, "reboot " + name, "uncordon " + name}, f.log)
		})
	}
}

func TestChecks_ASickNodeThatAKilledRunHasLeftCordonedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		require.NoError(t, f.Cordon(t.Context(), "worker-1"))
		f.machines["worker-1"].Stage = "booting"
		err := f.checked(t, nodes, func() bool { return f.nodes["worker-1"].Unschedulable }).Take(t.Context(), f.change(nodes, "cp-1"))
		require.ErrorContains(t, err, "not so: the databases have a primary; worker-1: an earlier run has left it cordoned, and ")
		assert.Equal(t, []string{"cordon worker-1"}, f.log)
	})
}

func TestChecks_NoNodeIsRemovedWhileOneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		err := f.checked(t, nodes, func() bool { return true }).Remove(t.Context(), f, named(nodes, "worker-1"))
		require.ErrorContains(t, err, "not so: the databases have a primary")
		assert.Empty(t, f.log)
	})
}

// Rook writes what Ceph says once a minute: for so long, the check holds although it should not.
func TestChecks_TheyMustHoldForAsLongAsTheyMayBeOutOfDate(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			var changed time.Time
			e := f.checked(t, nodes, func() bool {
				since := time.Since(changed)
				return !changed.IsZero() && since > time.Minute && since < 3*time.Minute
			})
			e.Settle = cluster.Duration{Duration: 75 * time.Second}
			require.NoError(t, e.Take(t.Context(), Change{Node: named(nodes, "worker-1"), Quiet: quiet, Act: func(context.Context) error {
				f.with(func() { changed = time.Now() })
				return nil
			}}))
			if quiet {
				assert.Less(t, time.Since(changed), time.Minute, "a change that interrupts no pod waits for no Ceph")
			} else {
				assert.GreaterOrEqual(t, time.Since(changed), 3*time.Minute+75*time.Second)
			}
		})
	}
}

func TestChecks_BeforeARemovalTheyHoldForAsLongAsTheyMayBeOutOfDate(t *testing.T) {
	for _, name := range []string{"worker-1", "cp-3"} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			start := time.Now()
			e := f.checked(t, nodes, func() bool { since := time.Since(start); return since > time.Minute && since < 2*time.Minute })
			e.Nodes = slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Name == name })
			e.Settle = cluster.Duration{Duration: 75 * time.Second}
			require.NoError(t, e.Remove(t.Context(), f, named(nodes, name)))
			assert.GreaterOrEqual(t, time.Since(start), 2*time.Minute+75*time.Second)
		})
	}
}

// withCeph returns an engine of a provider of storage, whose Rook asks Ceph once a minute, unless it is gone.
func (f *fake) withCeph(t *testing.T, nodes []Node, gone func() bool) *Engine {
	e := f.checked(t, nodes, func() bool { return false })
	e.Leaving, e.Settle = []cluster.Check{{Name: forGood}}, cluster.Duration{Duration: 75 * time.Second}
	f.forGood = func() string { return "" }
	start, asked := time.Now(), time.Now()
	f.asked = func() time.Time {
		if !gone() {
			asked = start.Add(time.Since(start).Truncate(time.Minute))
		}
		return asked
	}
	return e
}

func TestChecks_NoTurnBeginsBeforeRookHasAskedCephSinceTheNodeWaits(t *testing.T) {
	for quiet, least := range map[bool]time.Duration{false: 40 * time.Second, true: 0} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			e := f.withCeph(t, nodes, func() bool { return false })
			time.Sleep(20 * time.Second)
			start, change := time.Now(), f.change(nodes, "worker-1")
			change.Quiet = quiet
			begun, err := e.Begin(t.Context(), change)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, time.Since(start), least)
			assert.Less(t, time.Since(start), least+5*time.Second)
			require.Error(t, begun.Fail(t.Context(), errors.New("given up")))
		})
	}
}

// What Rook has said since the first node is back counts for the next turn: each node would wait another minute.
func TestChecks_RightAfterATurnTheNextOneWaitsForNoOtherWordOfRook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e := f.withCeph(t, nodes, func() bool { return false })
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "worker-1")))
		start := time.Now()
		begun, err := e.Begin(t.Context(), f.change(nodes, "worker-2"))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), 15*time.Second, "the drain takes some seconds")
		require.Error(t, begun.Fail(t.Context(), errors.New("given up")))
	})
}

func TestChecks_ARookThatAsksNoMoreEndsTheWaitForATurnWithItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		start := time.Now()
		err := f.withCeph(t, nodes, func() bool { return true }).Take(t.Context(), f.change(nodes, "worker-1"))
		require.ErrorContains(t, err, "worker-1 is not changed, because the cluster cannot spare it: worker-1's turn: gave up after 10m0s")
		require.ErrorContains(t, err, "not so: Rook has asked Ceph since "+start.UTC().Format(time.RFC3339))
		assert.Empty(t, f.log)
	})
}

// The drain has evicted Rook's operator, which starts elsewhere: until it asks Ceph, its status says that all is well.
func TestChecks_AfterATurnRookMustHaveAskedCephSinceTheNodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		var changed time.Time
		e := f.withCeph(t, nodes, func() bool { return !changed.IsZero() && time.Since(changed) < 5*time.Minute })
		change := f.change(nodes, "worker-1")
		act := change.Act
		change.Act = func(ctx context.Context) error {
			changed = time.Now()
			return act(ctx)
		}
		require.NoError(t, e.Take(t.Context(), change))
		assert.GreaterOrEqual(t, time.Since(changed), 5*time.Minute)
	})
}

// Its change may be what brings Rook back.
func TestChecks_ANodeThatIsSickWaitsForNoWordOfRook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e := f.withCeph(t, nodes, func() bool { return true })
		f.machines["worker-1"].Services["kubelet"] = talosapi.Service{State: "Failed", Known: true}
		begun, err := e.Begin(t.Context(), f.change(nodes, "worker-1"))
		require.NoError(t, err)
		require.Error(t, begun.Fail(t.Context(), errors.New("given up")))
	})
}
