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

// listener opens a passthrough to the backend on an address of its own, as the VIP and each control plane have one.
func listener(t *testing.T, backend net.Listener) *passthrough {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := netip.MustParseAddrPort(front.Addr().String())
	require.NoError(t, front.Close())
	target := netip.MustParseAddrPort(backend.Addr().String())
	p, err := newPassthrough(at.Addr(), at.Port(), func() (netip.AddrPort, bool) { return target, true })
	require.NoError(t, err)
	t.Cleanup(p.stop)
	return p
}

// openAddresses counts the addresses that accept connections.
func openAddresses(all ...*passthrough) (open int) {
	for _, p := range all {
		if conn, err := net.Dial("tcp", p.listen); err == nil {
			_ = conn.Close()
			open++
		}
	}
	return open
}

func TestControlPlane_FaultsOfTheAPIServerHitEveryAddressOfTheCluster(t *testing.T) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer backend.Close()
	vip, node := listener(t, backend), listener(t, backend)
	c := &ControlPlane{
		o:         Options{Name: "infra", Faults: &fault.Set{}},
		listeners: map[*passthrough]struct{}{vip: {}, node: {}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.followFaults(ctx)
	eventually := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool { return openAddresses(vip, node) == want }, time.Minute, time.Millisecond)
	}
	require.NoError(t, c.o.Faults.On(fault.Fault{Kind: fault.APIServerFlaps, Target: "infra", Detail: "30ms/30ms"}))
	for range 2 {
		eventually(0)
		eventually(2)
	}
	c.o.Faults.Clear()
	eventually(2)
	require.NoError(t, c.o.Faults.On(fault.Fault{Kind: fault.APIServerFlaps, Target: "infra", Detail: "30ms/30ms"}))
	require.NoError(t, c.o.Faults.On(fault.Fault{Kind: fault.APIServerGone, Target: "infra"}))
	eventually(0)
	require.Never(t, func() bool { return openAddresses(vip, node) > 0 }, 100*time.Millisecond, 5*time.Millisecond,
		"api-server-gone overrides flapping")
	c.o.Faults.Clear()
	eventually(2)
}
