package kubeapi_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A watch is told by nothing else that the virtual IP has moved to another machine.
func TestNew_AConnectionEndsWithinSecondsAfterItsServerHasGone(t *testing.T) {
	s := server(t, 0, nil)
	connection, err := connect(t, s).Config.Dial(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer connection.Close()
	raw, err := connection.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	option := func(name int) (value int) {
		require.NoError(t, raw.Control(func(socket uintptr) { value, err = syscall.GetsockoptInt(int(socket), syscall.IPPROTO_TCP, name) }))
		require.NoError(t, err)
		return value
	}
	limit := option(syscall.TCP_KEEPIDLE) + option(syscall.TCP_KEEPINTVL)*option(syscall.TCP_KEEPCNT)
	assert.LessOrEqual(t, limit, 6)
}
