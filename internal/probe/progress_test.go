package probe

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgress_BeginsEachLineWithTheTimeSinceTheRunBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		p := Begin(&log)
		p.Say("looks")
		time.Sleep(61500 * time.Millisecond)
		p.Say("has %d nodes", 5)
		assert.Equal(t, "    0.0s  looks\n   61.5s  has 5 nodes\n", log.String())
		assert.Equal(t, Duration(61500*time.Millisecond), p.Took())
	})
}

func TestWithin_EndsWithTheLimitAsItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := Within(t.Context(), time.Minute)
		defer cancel()
		<-ctx.Done()
		require.EqualError(t, context.Cause(ctx), "not done within 1m0s")
	})
}
