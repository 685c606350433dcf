package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Probe tries what a lab needs from its namespaces. It must run as pid 1 of new ones.
func Probe() error { return mountProc() }

// Init is pid 1. It runs argv as its child with the same standard streams and the extra files, reaps orphaned
// processes, forwards SIGTERM and SIGINT, and returns the child's exit code. Afterwards the process must end.
func Init(argv []string, extra ...*os.File) (int, error) {
	if err := mountProc(); err != nil {
		return 1, err
	}
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Env: os.Environ(), Files: append([]*os.File{os.Stdin, os.Stdout, os.Stderr}, extra...),
	})
	if err != nil {
		return 1, fmt.Errorf("lab init: %w", err)
	}
	for _, f := range extra {
		_ = f.Close() // the child has it; a reader waits until the last writer closes it
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range signals {
			_ = child.Signal(s)
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("lab init: wait: %w", err)
		case pid == child.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == child.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}

// mountProc mounts a /proc for the pid namespace, and keeps mounts in the namespaces private.
func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
