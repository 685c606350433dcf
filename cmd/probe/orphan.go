package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// errOrphaned is why a probe of the program stops that nobody waits for any more.
var errOrphaned = errors.New("stopped, because the run that has started this was stopped")

// whileStarted ends a context when one of the two processes above this one is gone, or nobody reads the output any more. Pulumi's command
// plugin kills its child after an interrupt, and no other process (pulumi-command v1.2.1, provider/pkg/provider/local/commandOutputs.go): a
// shell, below which this process may be the child of "go run". Without a look at them, the probe would go on with the next node. If that
// happens while "go run" still compiles, nothing tells which process its parent was: then the plugin's end does, which reads the output.
// The real Talos 1.14 has shown why: a probe that outlived its run and that of the next run bootstrapped etcd within 80 ms, and etcd waited
// for its volumes for ever.
func whileStarted(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signal.Ignore(syscall.SIGPIPE) // the undoing of a change must not end with the reader of its output
	parent := os.Getppid()
	above := 0
	if parentOf(os.Getpid()) == parent { // otherwise /proc is of other processes
		above = parentOf(parent)
	}
	started := func() bool { return os.Getppid() == parent && runs(above) && !unread(os.Stdout) }
	if !started() {
		cancel(errOrphaned)
		return ctx
	}
	go func() {
		_ = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(context.Context) (bool, error) { return !started(), nil })
		cancel(errOrphaned) // of a context that has ended it changes nothing
	}()
	return ctx
}

// unread reports whether a file is a pipe that no process reads.
func unread(file *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // a descriptor is small
	_, err := unix.Poll(fds, 0)
	return err == nil && isPipe(file) && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// runs reports whether a process exists; 0 is one that is not known.
func runs(pid int) bool { return pid == 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// parentOf returns the parent of a process; 0 if it is not known.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, fields, _ := strings.Cut(string(text), ") ") // after the name: the state and the parent
		text = []byte(strings.Join(strings.Fields(fields)[1:2], ""))
	} else if text, err = exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output(); err != nil { //nolint:noctx // ps is quick
		return 0
	}
	parent, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return parent
}

// isPipe reports whether a file is a pipe, as the standard input of a command of Pulumi is.
func isPipe(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}
