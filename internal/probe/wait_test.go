package probe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWait_SaysAReasonOnceAndEndsWithTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		p := Begin(&said)
		err := Wait{Limit: time.Minute, Say: p.Say}.Until(t.Context(), "bread", func(context.Context) (string, error) {
			if time.Since(p.Started) < 30*time.Second {
				return "no flour", nil
			}
			return "no yeast", nil
		})
		require.EqualError(t, err, "bread: gave up after 1m0s (last: no yeast)")
		assert.Equal(t, "    0.0s  waits for bread: no flour\n   30.0s  waits for bread: no yeast\n", said.String())
	})
}

func TestWait_KeepsTheReasonBeforeALookThatTheEndHasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := Wait{Limit: time.Minute, Say: Begin(&strings.Builder{}).Say}
		err := wait.Until(t.Context(), "bread", func(ctx context.Context) (string, error) {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < 10*time.Second {
				time.Sleep(time.Until(deadline) - time.Millisecond)
				return "timed out", nil
			}
			return "no yeast", nil
		})
		require.EqualError(t, err, "bread: gave up after 1m0s (last: no yeast)")
	})
}

func TestWait_EndsWithAnErrorOfALookAndNotWithALookThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, looks := errors.New("broken"), 0
		err := Wait{Say: Begin(&strings.Builder{}).Say}.Until(t.Context(), "bread", func(ctx context.Context) (string, error) {
			if looks++; looks == 1 {
				<-ctx.Done()
				return "no answer", nil
			}
			return "", broken
		})
		require.ErrorIs(t, err, broken)
		assert.Equal(t, 2, looks)
	})
}

func TestWait_LooksAgainWhileAConditionIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, looks := time.Now(), 0
		err := Wait{Every: 10 * time.Millisecond, Stable: 5 * time.Millisecond}.Until(t.Context(), "bread",
			func(context.Context) (string, error) { looks++; return "", nil })
		require.NoError(t, err)
		assert.Equal(t, 2, looks)
		assert.Equal(t, 10*time.Millisecond, time.Since(start))
	})
}

func TestWait_AsksNothingAfterAnInterrupt(t *testing.T) {
	for range 20 { // the next look is due, too
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			looks := 0
			err := Wait{}.Until(ctx, "bread", func(context.Context) (string, error) {
				looks++
				time.Sleep(2 * time.Second)
				interrupt()
				return "no flour", nil
			})
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, 1, looks)
		})
	}
}
