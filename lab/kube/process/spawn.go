package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
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
