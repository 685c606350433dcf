package fault

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFault_FlappingBeginsBrokenAndAlternates(t *testing.T) {
	f := Fault{Kind: KubeletFlaps, Detail: "2s/3s"}
	for since, want := range map[time.Duration]struct {
		broken bool
		left   time.Duration
	}{
		0: {true, 3 * time.Second}, 2999 * time.Millisecond: {true, time.Millisecond},
		3 * time.Second: {false, 2 * time.Second}, 5 * time.Second: {true, 3 * time.Second},
	} {
		broken, left := f.phase(since)
		require.Equal(t, want.broken, broken, since)
		require.Equal(t, want.left, left, since)
	}
	broken, left := Fault{}.phase(0)
	require.True(t, broken)
	require.Equal(t, flapDown, left)
}

func TestFault_FlappingBeginsBrokenAtATargetThatStartsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := time.Now()
		var s Set
		require.NoError(t, s.On(Fault{Kind: KubeletFlaps, Target: "infra-worker-1", Detail: "2s/3s"}))
		time.Sleep(4 * time.Second)
		f, on := s.Active(KubeletFlaps, "infra-worker-1")
		require.True(t, on)
		broken, left := f.Flapping(old)
		require.False(t, broken)
		require.Equal(t, time.Second, left)
		broken, left = f.Flapping(time.Now())
		require.True(t, broken)
		require.Equal(t, 3*time.Second, left)
	})
}

func TestSplitStatus_ReadsAStatusOrTheReasonOfA500(t *testing.T) {
	for detail, want := range map[string]struct {
		code   int
		reason string
	}{
		"595 No route to host": {595, "No route to host"},
		"503":                  {503, ""},
		"out of luck":          {500, "out of luck"},
	} {
		code, reason, err := SplitStatus(detail)
		require.NoError(t, err)
		require.Equal(t, want.code, code)
		require.Equal(t, want.reason, reason)
	}
}

func TestPeriods_ReadsWorkingAndBroken(t *testing.T) {
	up, down, err := periods("2s/500ms")
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, up)
	require.Equal(t, 500*time.Millisecond, down)
	up, down, err = periods("")
	require.NoError(t, err)
	require.Equal(t, []time.Duration{flapUp, flapDown}, []time.Duration{up, down})
}
