// Package process runs the real programs of the lab (etcd, kube-apiserver, Flux controllers …) as children. Each has
// its own process group and log. The kernel kills them when the lab ends, even by kill -9.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec describes a process.
type Spec struct {
	Cluster string   // cluster name, for the table
	Node    string   // node name, for the table; empty for the control plane of a cluster
	Name    string   // e.g. "kube-apiserver"
	Path    string   // binary
	Args    []string // without the binary
	Env     []string // whole environment, KEY=VALUE
	Dir     string   // working directory; empty: the directory of Log
	Log     string   // log file, appended to; created with its directory
	// Output, if not nil, receives stdout and stderr. Then Log is only the path in the table.
	Output io.Writer
	// Mounts are files and folders that the process sees in another place, by the absolute path at which it sees them. They
	// are in a mount namespace of its own, which needs root or the lab's namespaces. A folder for one below /run need not
	// exist: the process does not see the machine's /run.
	Mounts map[string]string
	// Root, if not empty, is the folder that the process sees as /, as in a container. Path is then a path inside it. It must hold what
	// Mounts are mounted on.
	Root string
	// WorkDir is the working directory inside Root; "" means /.
	WorkDir string
	// Network is the file of the network namespace that the process runs in; "" is this process's.
	Network string
	// Hostname, if not empty, is the host name that the process sees. It needs root or the lab's namespaces.
	Hostname string
	// Table, if not nil, lists the process while it runs.
	Table *Table
}

// Process is a running child.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error
}

// Start starts the child and returns at once.
func Start(s Spec) (*Process, error) {
	p := &Process{spec: s, done: make(chan struct{})}
	p.cmd = s.command()
	p.cmd.Env = s.Env
	p.cmd.Dir = s.Dir
	p.cmd.WaitDelay = 2 * time.Second
	if s.Output != nil {
		p.cmd.Stdout, p.cmd.Stderr = s.Output, s.Output
	} else {
		if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		f, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		p.log, p.cmd.Stdout, p.cmd.Stderr = f, f, f
	}
	if p.cmd.Dir == "" && s.Log != "" {
		p.cmd.Dir = filepath.Dir(s.Log)
	}
	if err := spawn(p.cmd, s.Hostname); err != nil {
		p.closeLog()
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	s.Table.add(p)
	go func() {
		p.err = p.cmd.Wait()
		p.closeLog()
		s.Table.remove(p)
		close(p.done)
	}()
	return p, nil
}

// mountScript mounts, and then becomes the program. Its arguments are pairs of what and where, an empty one, and the command.
const mountScript = `set -e
mount -t tmpfs -o mode=0755 tmpfs /run
while [ -n "$1" ]; do
	case "$2" in /run/*|/var/run/*) if [ -d "$1" ]; then mkdir -p "$2"; fi ;; esac
	mount --bind "$1" "$2"
	shift 2
done
shift
exec "$@"`

// rootScript mounts into another root, and then becomes the program in there. Its first arguments are the root and the working directory in
// it, followed by mountScript's.
const rootScript = `set -e
root=$1 dir=$2
shift 2
while [ -n "$1" ]; do
	mount --rbind "$1" "$root$2"
	shift 2
done
shift
exec "$(PATH=/usr/sbin:/sbin:/usr/bin:/bin command -v unshare)" --root="$root" --wd="$dir" -- "$@"`

// command is the command of the process, in a mount namespace of its own if it has mounts.
func (s Spec) command() *exec.Cmd {
	line := append([]string{s.Path}, s.Args...)
	if len(s.Mounts) > 0 || s.Root != "" {
		mounts := []string{"/bin/sh", "-c", mountScript, "sh"}
		if s.Root != "" {
			mounts = []string{"/bin/sh", "-c", rootScript, "sh", s.Root, cmp.Or(s.WorkDir, "/")}
		}
		for _, where := range slices.Sorted(maps.Keys(s.Mounts)) {
			mounts = append(mounts, s.Mounts[where], where)
		}
		line = slices.Concat(mounts, []string{""}, line)
	}
	if s.Network != "" {
		line = append([]string{"nsenter", "--net=" + s.Network, "--"}, line...)
	}
	c := exec.Command(line[0], line[1:]...)
	if len(s.Mounts) > 0 || s.Root != "" {
		c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // Go makes its mounts private
	}
	return c
}

// Run runs a command to its end with the streams of its caller, and returns its exit code. It ends the command when ctx ends.
func Run(ctx context.Context, s Spec, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	p := &Process{spec: s, cmd: s.command(), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.WaitDelay = s.Env, s.Dir, 2*time.Second
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	if err := spawn(p.cmd, s.Hostname); err != nil {
		return -1, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer context.AfterFunc(ctx, func() { p.signal(syscall.SIGKILL) })()
	p.err = p.cmd.Wait()
	close(p.done)
	return p.ExitCode(), ctx.Err()
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is the child's exit code, 128+n if signal n ended it, -1 while it runs.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
	default:
		return -1
	}
	state := p.cmd.ProcessState
	if state == nil {
		return 255
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// Err is the error that the child ended with; nil while it runs and after exit code 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop ends the child and waits: SIGTERM to its group, SIGKILL after grace or when ctx ends.
func (p *Process) Stop(ctx context.Context, grace time.Duration) {
	p.signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-p.done:
		return
	case <-ctx.Done():
	}
	p.Kill()
}

// Kill ends the child at once and waits for it.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends a signal to the whole group. ESRCH means that it has ended.
func (p *Process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
		return // the pid can belong to another process by now
	default:
	}
	if err := syscall.Kill(-p.PID(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = p.cmd.Process.Signal(sig)
	}
	if sig == syscall.SIGSTOP {
		p.awaitStop()
	}
}

// awaitStop returns when the child has stopped or ended. On a busy computer, its threads run on for a while after SIGSTOP, until one takes
// the signal.
func (p *Process) awaitStop() {
	for {
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (p *Process) closeLog() {
	if p.log != nil {
		_ = p.log.Close()
	}
}
