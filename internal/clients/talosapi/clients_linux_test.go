package talosapi

import (
	"context"
	"net"
	"testing"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

func TestDial_GivesUpAConnectionToAMachineThatIsGoneWithoutAWord(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	dialed := make(chan net.Conn, 9)
	one, err := DialEndpoint(t.Context(), &clientconfig.Config{Context: "infra", Contexts: map[string]*clientconfig.Context{"infra": {}}},
		"127.0.0.1", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
			dialed <- conn
			return conn, err
		}))
	require.NoError(t, err)
	defer one.Close()
	ctx, cancel := context.WithTimeout(t.Context(), CallTimeout)
	defer cancel()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1)) // the client has set up its connection, and says hello
			cancel()
			<-t.Context().Done()
		}
	}()
	_, err = one.Version(ctx)
	require.Error(t, err, "nobody answers")
	socket, isTCP := (<-dialed).(*net.TCPConn)
	require.True(t, isTCP)
	raw, err := socket.SyscallConn()
	require.NoError(t, err)
	var limit int
	controlled := raw.Control(func(fd uintptr) { limit, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) })
	require.NoError(t, controlled)
	require.NoError(t, err)
	assert.EqualValues(t, lostAfter.Milliseconds(), limit)
}
