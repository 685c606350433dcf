package workload

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Instance is one run of a container, from its start to its exit. It is safe for concurrent use.
type Instance struct {
	// OnStop, if not nil, ends the instance within grace. Without it, Stop exits with code 0.
	OnStop func(ctx context.Context, grace time.Duration)
	// Message is what the container's status says about its end; empty: nothing. It is set before the instance is returned.
	Message string
	// OnExec, if not nil, runs commands. Without it, every command is unknown.
	OnExec Exec

	wait.Changes // of Ready

	mu     sync.Mutex
	ready  bool
	exited bool
	code   int
	done   chan struct{}
	cancel context.CancelFunc
}

// Exec runs a command in a container and returns its exit code.
type Exec func(ctx context.Context, cmd []string, stdin io.Reader, stdout, stderr io.Writer) (int, error)

// NewInstance returns a running instance that is not ready, and a context that ends with the instance or with ctx.
func NewInstance(ctx context.Context) (*Instance, context.Context) {
	i := &Instance{done: make(chan struct{})}
	ctx, i.cancel = context.WithCancel(ctx)
	return i, ctx
}

// SetReady sets whether the container passes its readiness probe.
func (i *Instance) SetReady(ready bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ready != ready && !i.exited {
		i.ready = ready
		i.Notify()
	}
}

// Ready tells whether the container passes its readiness probe.
func (i *Instance) Ready() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ready
}

// Exit ends the instance. Only the first call has an effect.
func (i *Instance) Exit(code int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.exited {
		return
	}
	i.exited, i.ready, i.code = true, false, code
	i.Notify()
	close(i.done)
	i.cancel()
}

// Done is closed when the container has exited.
func (i *Instance) Done() <-chan struct{} { return i.done }

// ExitCode is the container's exit code, valid once Done is closed.
func (i *Instance) ExitCode() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.code
}

// Stop ends the container and waits until it has exited.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) {
	if i.OnStop != nil {
		i.OnStop(ctx, grace)
	}
	i.Exit(0)
}

// Exec runs a command in the container.
func (i *Instance) Exec(ctx context.Context, cmd []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	select {
	case <-i.done:
		return 0, fmt.Errorf("container is not running")
	default:
	}
	if i.OnExec != nil {
		return i.OnExec(ctx, cmd, stdin, stdout, stderr)
	}
	return UnknownCommand(cmd, stderr)
}

// UnknownCommand is the answer to a command that is not simulated. The lab does not model the file systems of images.
func UnknownCommand(cmd []string, stderr io.Writer) (int, error) {
	name := ""
	if len(cmd) > 0 {
		name = cmd[0]
	}
	_, err := fmt.Fprintf(stderr, "exec %q: not modelled by the lab in this container\n", name)
	return 127, err
}

// After calls f after d, unless the instance has exited by then.
func (i *Instance) After(d time.Duration, f func()) {
	t := time.NewTimer(d)
	go func() {
		defer t.Stop()
		select {
		case <-t.C:
			f()
		case <-i.done:
		}
	}()
}
