package rotate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

func (p *pods) Clock(_ context.Context, node turn.Node) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onClock != nil {
		p.onClock()
	}
	return time.Now().Add(p.ahead[node.Name]).Truncate(time.Second), nil
}

func TestRun_OfKubernetesChangesNothingWhileAClockIsWrong(t *testing.T) {
	for name, one := range map[string]struct {
		ahead time.Duration // cp-2
		says  string        // "" means that the run succeeds
	}{
		"ahead":  {30 * time.Second, "the clock of cp-2 may be up to 31s ahead of that of cp-1"},
		"behind": {-time.Hour, "the clock of cp-1 may be up to 1h0m1s ahead of that of cp-2"},
		"nearly": {3 * time.Second, ""},
	} {
		s := spec(t)
		p := withPods(t, s)
		p.ahead = map[string]time.Duration{"cp-2": one.ahead}
		_, _, err := rotated(t, s, p)
		if one.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "this run has changed nothing: the clocks of the control planes: gave up after 2m0s (last: "+one.says)
		require.ErrorContains(t, err, "network.ntp")
		assert.Empty(t, p.log, name)
	}
}

func TestRun_OfKubernetesWaitsForAClockThatIsBeingSet(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.ahead = map[string]time.Duration{"cp-2": time.Minute}
	looks := 0
	p.onClock = func() {
		if looks++; looks > 20 {
			p.ahead = nil
		}
	}
	_, _, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Equal(t, wholeRun, p.changes())
}

// A pod that was created before the CAs were kept is restarted, although the API server that dated it is ahead by what is allowed.
func TestStale_IncludesPodsThatAClockAheadMayHaveDated(t *testing.T) {
	kept := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	roots := []Root{{Namespace: "kept", Kept: true, Since: kept}}
	dated := Pod{Namespace: "kept", Created: kept.Add(-time.Second).Add(clocksApart)}
	assert.Equal(t, []Pod{dated}, Stale([]Pod{dated}, roots, nil))
	dated.Created = kept.Add(clocksApart + time.Second)
	assert.Empty(t, Stale([]Pod{dated}, roots, nil))
}

func TestClients_ReadTheClockOfAnAPIServer(t *testing.T) {
	c, at := apiServer(t)
	now, err := c.Clock(t.Context(), at)
	require.NoError(t, err, "a refusal has the time, too")
	assert.InDelta(t, 0, time.Since(now).Seconds(), 5)
	c.Authorities = c.Authorities[:1]
	_, err = c.Clock(t.Context(), at)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}
