package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starts hands commands to the one thread that forks them. The kernel sends Pdeathsig when the forking thread ends, not
// when the process does, so that thread must live as long as the daemon.
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

// Spawn starts cmd in a process group of its own, to be killed by the kernel when this process ends, however it ends.
func Spawn(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	starts() <- func() { done <- cmd.Start() }
	return <-done
}
