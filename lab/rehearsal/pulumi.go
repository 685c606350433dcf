package rehearsal

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/diagnostics"
	"github.com/slipway-platform/slipway/lab/session"
)

// heartbeat is how often a running command prints its last line.
const heartbeat = 10 * time.Second

// pulumi runs one command on one stack. Its output goes to a log file. out gets the last line from time to time, and
// the last lines if it fails. It also fails if the output has messages that a successful run should not print.
func pulumi(ctx context.Context, s *session.Session, out io.Writer, name string, args ...string) (time.Duration, error) {
	path := filepath.Join(s.Home.Logs(), "pulumi-"+name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("rehearsal: %w", err)
	}
	defer log.Close()
	last := &tail{keep: 40}
	c := s.Command(ctx, append([]string{"pulumi", "--non-interactive", "--color=never"}, args...)...)
	c.Env = append(c.Env, "PULUMI_DEBUG_COMMANDS=true") // required for --event-log
	c.Stdout = io.MultiWriter(log, last)
	c.Stderr = c.Stdout
	start := time.Now()
	stop := every(heartbeat, func() {
		fmt.Fprintf(out, "   … %s  %s\n", seconds(time.Since(start)), last.line())
	})
	err = c.Run()
	stop()
	took := time.Since(start)
	if err != nil {
		return took, fmt.Errorf("pulumi %s: %w; the end of %s:\n%s", strings.Join(args, " "), err, path, last)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return took, fmt.Errorf("rehearsal: %w", err)
	}
	if found := diagnostics.Unexpected(string(text)); len(found) > 0 {
		return took, fmt.Errorf("pulumi %s: succeeded, but %s has unexpected messages:\n%s", strings.Join(args, " "), path,
			strings.Join(found, "\n"))
	}
	return took, nil
}

// every calls f periodically until stop is called, which waits for the last call.
func every(period time.Duration, f func()) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// tail keeps the last lines that were written to it.
type tail struct {
	keep int

	mu    sync.Mutex
	lines []string
	part  string
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parts := strings.Split(t.part+string(p), "\n")
	t.part = parts[len(parts)-1]
	t.lines = append(t.lines, parts[:len(parts)-1]...)
	t.lines = t.lines[max(0, len(t.lines)-t.keep):]
	return len(p), nil
}

// line is the last line with text.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(t.lines[i]); line != "" {
			return line
		}
	}
	return ""
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n") + "\n" + t.part
}
