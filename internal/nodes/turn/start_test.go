package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStart_ChangesAndAwaitsTheNodeAndKeepsTheTurnUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e := f.engine(t, nodes)
		begun, err := e.Start(t.Context(), f.change(nodes, "worker-1"))
		require.NoError(t, err)
		assert.Equal(t, []string{"cordon worker-1", "reboot worker-1"}, f.log)
		assert.Equal(t, "11", f.machines["worker-1"].Boot, "it is back")
		start := time.Now()
		next := make(chan error)
		go func() { next <- e.Take(t.Context(), f.change(nodes, "worker-2")) }()
		time.Sleep(time.Hour)
		require.NoError(t, begun.End(t.Context()))
		require.NoError(t, <-next)
		assert.Greater(t, time.Since(start), time.Hour, "the other one waits for the end")
		assert.Equal(t, []string{"uncordon worker-1", "cordon worker-2", "reboot worker-2", "uncordon worker-2"}, f.log[2:])
	})
}

func TestStart_WithoutTheChangeTheNodeIsSchedulableAndNoOtherOneIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e, c := f.engine(t, nodes), f.change(nodes, "worker-1")
		c.Act = func(context.Context) error { return errors.New("busy") }
		_, err := e.Start(t.Context(), c)
		require.EqualError(t, err, "worker-1: busy")
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
		require.ErrorContains(t, e.Take(t.Context(), f.change(nodes, "worker-2")), "the turn of worker-1 has failed")
	})
}

func TestStart_ANodeThatDoesNotComeBackStaysCordonedAndNoOtherOneIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e, c := f.engine(t, nodes), f.change(nodes, "worker-1")
		c.Act = func(context.Context) error { return nil }
		_, err := e.Start(t.Context(), c)
		require.ErrorContains(t, err, "worker-1 is not back, and stays cordoned: ")
		require.ErrorContains(t, err, "it has not rebooted yet")
		assert.Equal(t, []string{"cordon worker-1"}, f.log)
		require.ErrorContains(t, e.Take(t.Context(), f.change(nodes, "worker-2")), "the turn of worker-1 has failed")
	})
}

func TestStart_ANodeThatHasRebootedAndIsNotBackKeepsItsTurnUntilTheEndReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e, c := f.engine(t, nodes), f.change(nodes, "worker-1")
		c.Check = func(context.Context, string, Machine, KubeNode) (string, error) {
			return "its etcd has a wrong flag", nil
		}
		begun, err := e.Start(t.Context(), c)
		require.NoError(t, err, "its change is stored")
		require.ErrorContains(t, begun.End(t.Context()), "its etcd has a wrong flag")
		assert.Equal(t, []string{"cordon worker-1", "reboot worker-1"}, f.log)
		require.ErrorContains(t, e.Take(t.Context(), f.change(nodes, "worker-2")), "the turn of worker-1 has failed")
	})
}
