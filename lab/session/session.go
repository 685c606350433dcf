// Package session controls a lab from outside: it starts the lab's namespaces, runs commands in them with the
// environment of a user of the stack files, and ends them.
package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/namespace"
	"github.com/slipway-platform/slipway/lab/wait"
)

// Session is a running lab.
type Session struct {
	Home     *home.Home
	Settings home.Settings
	Control  *control.Client

	pid   int
	ended chan struct{} // closed when the lab has ended; nil if another process started it
}

// Options configure the start of a lab.
type Options struct {
	Daemon        []string // command line of the lab inside its namespaces; the home's folder is appended
	DieWithParent bool     // the lab ends when this process ends for whatever cause; the caller has locked its thread
}

// Start starts the lab in h and waits until everything in it answers.
func Start(ctx context.Context, h *home.Home, settings home.Settings, o Options) (*Session, error) {
	lock, err := h.Lock()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	log, err := os.OpenFile(filepath.Join(h.Logs(), "lab.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	ready, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	defer ready.Close()

	child := namespace.Command(o.DieWithParent, append(o.Daemon, h.Dir)...)
	child.Stdout, child.Stderr = log, log
	child.ExtraFiles = []*os.File{lock, write} // file descriptors 3 and 4, see Inherited
	err = child.Start()
	_ = write.Close()
	if err != nil {
		return nil, fmt.Errorf("lab: start: %w", err)
	}
	s := &Session{Home: h, Settings: settings, Control: control.NewClient(h.Socket()), pid: child.Process.Pid, ended: make(chan struct{})}
	go func() {
		_ = child.Wait() // its log has the reason
		close(s.ended)
	}()
	if err := errors.Join(h.SetPID(s.pid), waitReady(ctx, ready, log.Name())); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// waitReady reads the daemon's line: empty if it is ready, otherwise the error.
func waitReady(ctx context.Context, ready *os.File, log string) error {
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(ready).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("lab: ended before it was ready; see %s", log)
	case line != "\n":
		return fmt.Errorf("lab: %s; see %s", strings.TrimSpace(line), log)
	}
	return nil
}

// Inherited returns, in the daemon, the file that locks the lab and the file for the daemon's line.
func Inherited() (lock, ready *os.File) {
	for _, fd := range []int{3, 4} {
		syscall.CloseOnExec(fd)
	}
	return os.NewFile(3, "lock"), os.NewFile(4, "ready")
}

// Attach returns the session of a running lab.
func Attach(h *home.Home) (*Session, error) {
	settings, err := h.Settings()
	if err != nil {
		return nil, err
	}
	pid, err := h.PID()
	if err != nil {
		return nil, err
	}
	return &Session{Home: h, Settings: settings, Control: control.NewClient(h.Socket()), pid: pid}, nil
}

// Command prepares argv to run in the lab, in the project's folder, with the lab's environment and no terminal. When
// ctx ends, it is interrupted, and killed five seconds later.
func (s *Session) Command(ctx context.Context, argv ...string) *exec.Cmd {
	prepared := s.Interactive(argv...)
	c := exec.CommandContext(ctx, prepared.Path, prepared.Args[1:]...)
	c.Env = prepared.Env
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	return c
}

// Interactive is Command for a person at a terminal, which sends the signals.
func (s *Session) Interactive(argv ...string) *exec.Cmd {
	return namespace.Enter(s.pid, s.Home.Project(), Environment(s.Home, s.Settings, os.Environ()), argv...)
}

// Output runs argv in the lab and returns its standard output. The error contains the end of its output.
func (s *Session) Output(ctx context.Context, stdin io.Reader, argv ...string) (string, error) {
	var out, text strings.Builder
	c := s.Command(ctx, argv...)
	c.Stdin, c.Stdout, c.Stderr = stdin, &out, &text
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(out.String()+text.String()))
	}
	return out.String(), nil
}

// Stop ends the lab and everything in it, and waits until the kernel has removed it.
func (s *Session) Stop(ctx context.Context) error {
	process, err := os.FindProcess(s.pid) // refers to the process, even if its number is reused
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	_ = process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	s.wait(ctx)
	if ctx.Err() == nil {
		return nil
	}
	_ = process.Kill()
	s.wait(context.WithoutCancel(ctx))
	return errors.New("lab: did not end within 15 s, so it was killed")
}

// wait returns when the lab or ctx has ended.
func (s *Session) wait(ctx context.Context) {
	if s.ended != nil {
		select {
		case <-s.ended:
		case <-ctx.Done():
		}
		return
	}
	for {
		running, err := s.Home.Running()
		if err == nil && !running || !wait.Pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// PID is pid 1 of the lab's namespaces, with its number outside of them.
func (s *Session) PID() int { return s.pid }
