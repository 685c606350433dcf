package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// starts passes commands to the thread that starts all of them. The kernel sends Pdeathsig when the starting thread
// ends, not when the process ends, so that thread must live as long as the process.
var starts = sync.OnceValue(func() chan<- func() {
	ch := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range ch {
			f()
		}
	}()
	return ch
})

// Spawn starts cmd in its own process group. The kernel kills it when this process ends, for whatever reason.
func Spawn(cmd *exec.Cmd) error { return spawn(cmd, "") }

// spawn is Spawn with another host name; "" is that of this process.
func spawn(cmd *exec.Cmd, hostname string) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	starts() <- func() {
		if hostname == "" {
			done <- cmd.Start()
		} else {
			done <- withHostname(hostname, cmd.Start)
		}
	}
	return <-done
}

// withHostname calls f while the thread is in a UTS namespace of its own, with that host name. f's children stay in it.
func withHostname(name string, f func() error) error {
	own, err := os.Open("/proc/thread-self/ns/uts")
	if err != nil {
		return err
	}
	defer own.Close()
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("host name %s: %w", name, err)
	}
	err = unix.Sethostname([]byte(name))
	if err == nil {
		err = f()
	}
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWUTS); back != nil {
		return errors.Join(err, fmt.Errorf("host name %s: %w", name, back))
	}
	return err
}
