package probe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
)

// pty returns both ends of a terminal with 100 columns and 30 lines.
func pty(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	control := func(request uintptr, value unsafe.Pointer) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(value))
		require.Zero(t, errno)
	}
	var number, unlocked uint32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&[4]uint16{30, 100, 0, 0}))
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tty.Close() })
	return screen, tty
}

func TestGate_IsLiveOnATerminalAndLeavesTheLastStateWhenInterrupted(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	screen, tty := pty(t)
	r := newRig(t)
	kubeconfig, talosconfig, _ := r.files(t)
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	shown := make(chan string)
	go func() {
		var all strings.Builder
		buffer := make([]byte, 4096)
		for {
			n, err := screen.Read(buffer)
			all.Write(buffer[:n])
			if strings.Contains(all.String(), "does not answer") {
				interrupt()
			}
			if err != nil {
				shown <- all.String()
				return
			}
		}
	}()
	var stdout bytes.Buffer
	require.NotNil(t, terminal(tty))
	code := run(ctx, []string{
		"gate", "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--timeout", "1m",
		"--node", "infra-cp-1,controlplane,10.25.11.11", "--node", "infra-worker-9,worker,10.25.11.29",
	}, nil, &stdout, tty)
	assert.Equal(t, exitUnhealthy, code)
	require.NoError(t, tty.Close())
	text := <-shown
	last := text[strings.LastIndex(text, "\x1b[?2026h"):]
	assert.Contains(t, last, "gate of by hand: ")
	assert.Contains(t, last, "the Talos API answers on every node")
	assert.Contains(t, last, "infra-worker-9: the Talos API answers on every node: ")
	assert.NotContains(t, text, "waits  infra-worker-9", "no lines beside the view")
	assert.Contains(t, stdout.String(), "interrupted after")
}

func TestTerminal_IsNoneWhereNoCursorCanBeMoved(t *testing.T) {
	_, tty := pty(t)
	t.Setenv("TERM", "dumb")
	assert.Nil(t, terminal(tty))
	t.Setenv("TERM", "xterm")
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	assert.Nil(t, terminal(writer))
	require.NoError(t, writer.Close())
	_, err = io.ReadAll(reader)
	require.NoError(t, err)
	var lines bytes.Buffer
	c := new(cobra.Command)
	c.SetErr(&lines)
	reporter, _ := newWaitFlags(c, nil, new(health.Target)).reporter()
	reporter.Seen(time.Second, nil)
	assert.NotContains(t, lines.String(), "\x1b")
}
