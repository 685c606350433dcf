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

func TestSet_ATargetMayBeAPartOfWhatIsAskedFor(t *testing.T) {
	var s Set
	require.NoError(t, s.On(Fault{Kind: ImagePull, Target: "cilium/operator"}))
	_, on := s.ActiveWithin(ImagePull, "quay.io/cilium/operator-generic:v1.18.7")
	require.True(t, on)
	_, on = s.ActiveWithin(ImagePull, "quay.io/cilium/cilium:v1.18.7")
	require.False(t, on)
	require.NoError(t, s.On(Fault{Kind: ProxmoxError, Target: "*"}))
	_, on = s.ActiveWithin(ProxmoxError, "GET /version")
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

func TestPeriods_ReadsWellAndBroken(t *testing.T) {
	up, down, err := Periods("2s/500ms", time.Hour, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, up)
	require.Equal(t, 500*time.Millisecond, down)
	up, down, err = Periods("", time.Minute, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Minute, time.Hour}, []time.Duration{up, down})
}
