package fault

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFault_FlappingBeginsBrokenAndTakesTurns(t *testing.T) {
	f := Fault{Kind: KubeletFlaps, Detail: "2s/3s"}
	for since, want := range map[time.Duration]struct {
		broken bool
		left   time.Duration
	}{0: {true, 3 * time.Second}, 2999 * time.Millisecond: {true, time.Millisecond}, 3 * time.Second: {false, 2 * time.Second}, 5 * time.Second: {true, 3 * time.Second}} {
		broken, left := f.Flapping(since)
		require.Equal(t, want.broken, broken, since)
		require.Equal(t, want.left, left, since)
	}
	broken, left := Fault{}.Flapping(0)
	require.True(t, broken)
	require.Equal(t, flapDown, left)
}
