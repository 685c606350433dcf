package kube

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPassthrough_CutsAndRefusesWhileShut(t *testing.T) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer backend.Close()
	go func() {
		for {
			c, err := backend.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := netip.MustParseAddrPort(free.Addr().String()).Port()
	require.NoError(t, free.Close())
	target := netip.MustParseAddrPort(backend.Addr().String())
	p, err := newPassthrough(netip.MustParseAddr("127.0.0.1"), port, func() (netip.AddrPort, bool) { return target, true })
	require.NoError(t, err)
	defer p.stop()

	c, err := net.Dial("tcp", p.listen)
	require.NoError(t, err)
	_, err = c.Write([]byte("ping"))
	require.NoError(t, err)
	got := make([]byte, 4)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "ping", string(got))

	p.shut()
	_, err = io.ReadFull(c, got)
	require.Error(t, err, "an open connection is cut")
	_, err = net.Dial("tcp", p.listen)
	require.Error(t, err, "a new one is refused")
	require.NoError(t, p.open(t.Context()))
	c, err = net.Dial("tcp", p.listen)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
