package turn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reboot is a worker that reboots some time after its turn has come.
type reboot struct {
	mu       sync.Mutex
	at, back time.Time // zero: never
	closed   bool
}

func (r *reboot) look(context.Context) (worker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now := time.Now(); {
	case r.at.IsZero() || now.Before(r.at):
		return worker{boot: "1", serves: true}, nil
	case now.Before(r.back):
		return worker{}, errors.New("no route")
	}
	return worker{boot: "2", serves: true}, nil
}

func (r *reboot) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// change does what the provider does after a turn has come.
func (r *reboot) change() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.back = time.Now().Add(2*time.Second), time.Now().Add(time.Minute)
}

// rebootAll gives turns to so many workers at the same time, and returns when the turn of each came.
func rebootAll(t *testing.T, q *Queue, workers int) []time.Duration {
	t.Helper()
	start, came := time.Now(), make(chan time.Duration)
	for i := range workers {
		go func() {
			r := &reboot{}
			assert.NoError(t, q.take(t.Context(), fmt.Sprint("worker-", i), "1", r.look, r.close))
			came <- time.Since(start)
			r.change()
		}()
	}
	var all []time.Duration
	for range workers {
		all = append(all, <-came)
	}
	return all
}

func TestQueue_WorkersRebootOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		came := rebootAll(t, &Queue{}, 3)
		assert.Zero(t, came[0])
		assert.GreaterOrEqual(t, came[1], time.Minute)
		assert.GreaterOrEqual(t, came[2], 2*time.Minute)
		time.Sleep(2 * time.Minute)
	})
}

func TestQueue_AsManyRebootAtOnceAsMayBeOutOfService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		came := rebootAll(t, &Queue{Most: 2}, 3)
		assert.Zero(t, came[1])
		assert.GreaterOrEqual(t, came[2], time.Minute)
		time.Sleep(2 * time.Minute)
	})
}

func TestQueue_EndsWithAWorkerThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, lost, next := &Queue{}, &reboot{}, &reboot{}
		require.NoError(t, q.take(t.Context(), "worker-1", "1", lost.look, lost.close))
		start := time.Now()
		err := q.take(t.Context(), "worker-2", "1", next.look, next.close)
		require.EqualError(t, err,
			"worker-2 is not changed, because worker-1 is not back 15m0s after its change; mend that one, and run up again")
		assert.Equal(t, BackTimeout, time.Since(start))
		assert.True(t, next.closed)
		time.Sleep(time.Second)
		assert.True(t, lost.closed)
	})
}

func TestQueue_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q, one, two := &Queue{}, &reboot{}, &reboot{}
		require.NoError(t, q.take(ctx, "worker-1", "1", one.look, one.close))
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, q.take(ctx, "worker-2", "1", two.look, two.close), context.Canceled)
		time.Sleep(time.Second)
	})
}
