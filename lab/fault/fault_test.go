package fault

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSet_AFaultBitesItsTargetOnly(t *testing.T) {
	var s Set
	require.NoError(t, s.On(Fault{Kind: KubeletDown, Target: "a"}))
	_, on := s.Active(KubeletDown, "a")
	require.True(t, on)
	_, on = s.Active(KubeletDown, "b")
	require.False(t, on)
	require.NoError(t, s.On(Fault{Kind: VMNeverBoots, Target: "*"}))
	_, on = s.Active(VMNeverBoots, "whatever")
	require.True(t, on)
	var none *Set
	_, on = none.Active(KubeletDown, "a")
	require.False(t, on, "a nil set holds no fault")
}

func TestSet_RefusesWhatItDoesNotKnowOrCannotAim(t *testing.T) {
	var s Set
	require.ErrorContains(t, s.On(Fault{Kind: "coffee"}), "unknown; one of")
	require.ErrorContains(t, s.On(Fault{Kind: KubeletDown}), "target missing; give a node name")
	require.ErrorContains(t, s.On(Fault{Kind: GitRefused, Target: "x"}), "takes none")
	require.Empty(t, s.List())
}

func TestSet_AFaultWithAnEndEndsAndTellsWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		require.NoError(t, s.On(Fault{Kind: APIServerGone, Target: "infra", Until: time.Now().Add(5 * time.Second)}))
		changed := s.Changed()
		start := time.Now()
		<-changed
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Empty(t, s.List())
	})
}

func TestSet_EveryChangeIsTold(t *testing.T) {
	var s Set
	f := Fault{Kind: KubeletDown, Target: "a"}
	for _, change := range []func(){func() { require.NoError(t, s.On(f)) }, func() { require.True(t, s.Off(f.Kind, f.Target)) }, s.Clear} {
		changed := s.Changed()
		change()
		<-changed
	}
}
