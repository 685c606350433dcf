package fault

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSet_AFaultIsActiveForItsTargetOnly(t *testing.T) {
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

func TestSet_RefusesUnknownKindsAndWrongTargets(t *testing.T) {
	var s Set
	require.ErrorContains(t, s.On(Fault{Kind: "coffee"}), "unknown; one of")
	require.ErrorContains(t, s.On(Fault{Kind: KubeletDown}), "target missing; give a node")
	require.ErrorContains(t, s.On(Fault{Kind: GitRefused, Target: "x"}), "takes none")
	require.Empty(t, s.List())
}

func TestSet_AFaultWithAnEndEndsAndNotifies(t *testing.T) {
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

func TestSet_EveryChangeNotifies(t *testing.T) {
	var s Set
	f := Fault{Kind: KubeletDown, Target: "a"}
	for _, change := range []func(){func() { require.NoError(t, s.On(f)) }, func() { require.True(t, s.Off(f.Kind, f.Target)) }, s.Clear} {
		changed := s.Changed()
		change()
		<-changed
	}
}

func TestSet_ATargetMayBeAPartOfTheName(t *testing.T) {
	var s Set
	require.NoError(t, s.On(Fault{Kind: ImagePull, Target: "cilium/operator"}))
	_, on := s.Active(ImagePull, "quay.io/cilium/operator-generic:v1.18.7")
	require.True(t, on)
	_, on = s.Active(ImagePull, "quay.io/cilium/cilium:v1.18.7")
	require.False(t, on)
	require.NoError(t, s.On(Fault{Kind: ProxmoxError, Target: "*"}))
	_, on = s.Active(ProxmoxError, "GET /version")
	require.True(t, on)
}

func TestSet_RefusesADetailThatItsKindCannotRead(t *testing.T) {
	var s Set
	require.ErrorContains(t, s.On(Fault{Kind: ProxmoxError, Target: "*", Detail: "200 fine"}), "no HTTP error")
	require.ErrorContains(t, s.On(Fault{Kind: VMWrongMAC, Target: "a", Detail: "BC:24:11"}), "no unicast MAC address")
	for _, d := range []string{"2s", "2s/", "x/3s", "0s/3s"} {
		require.ErrorContains(t, s.On(Fault{Kind: APIServerFlaps, Target: "infra", Detail: d}), "write e.g. 2s/3s", d)
	}
	require.Empty(t, s.List())
	require.NoError(t, s.On(Fault{Kind: APIServerFlaps, Target: "infra", Detail: "2s/3s"}))
}

func TestSet_WaitReturnsOnceAChangeMakesItTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		require.NoError(t, s.On(Fault{Kind: ProxmoxTaskHangs, Target: "*", Until: time.Now().Add(time.Minute)}))
		start := time.Now()
		require.NoError(t, s.Wait(t.Context(), func() bool { return !s.IsActive(ProxmoxTaskHangs, "qmcreate") }))
		require.Equal(t, time.Minute, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Wait(ctx, func() bool { return false }), context.DeadlineExceeded)
	})
}
