package kube

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestControlPlane_AFlappingAPIServerAlternates(t *testing.T) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer backend.Close()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := netip.MustParseAddrPort(front.Addr().String()).Port()
	require.NoError(t, front.Close())
	p, err := newPassthrough(netip.MustParseAddr("127.0.0.1"), port, netip.MustParseAddrPort(backend.Addr().String()))
	require.NoError(t, err)
	defer p.stop()
	c := &ControlPlane{o: Options{Name: "infra", Faults: &fault.Set{}}, listeners: map[*passthrough]struct{}{p: {}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.followFaults(ctx)
	answers := func() bool {
		conn, err := net.Dial("tcp", p.listen)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	eventually := func(want bool) {
		t.Helper()
		require.Eventually(t, func() bool { return answers() == want }, 10*time.Second, time.Millisecond)
	}
	require.NoError(t, c.o.Faults.On(fault.Fault{Kind: fault.APIServerFlaps, Target: "infra", Detail: "30ms/30ms"}))
	for range 2 {
		eventually(false)
		eventually(true)
	}
	c.o.Faults.Clear()
	eventually(true)
	require.NoError(t, c.o.Faults.On(fault.Fault{Kind: fault.APIServerGone, Target: "infra"}))
	eventually(false)
	require.Never(t, answers, 100*time.Millisecond, 5*time.Millisecond, "api-server-gone overrides flapping")
}
