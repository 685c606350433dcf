package probe

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress is the time that a run takes, and its log. It may be used concurrently.
type Progress struct {
	Started time.Time

	mu   sync.Mutex
	to   io.Writer
	last string // the line that Once wrote last, without its time
}

// Begin begins a run, whose log goes to a writer.
func Begin(to io.Writer) *Progress { return &Progress{Started: time.Now(), to: to} }

// Say writes a line, with the time since the run began.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	Say(p.to, time.Since(p.Started), format, args...)
}

// Once writes a line as Say does, unless it is the same as the last one. Once is not for concurrent use.
func (p *Progress) Once(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); line != p.last {
		p.last = line
		p.Say("%s", line)
	}
}

// Say writes a line of a log, with the time since its run began.
func Say(to io.Writer, since time.Duration, format string, args ...any) {
	fmt.Fprintf(to, "%8s  %s\n", fmt.Sprintf("%.1fs", since.Seconds()), fmt.Sprintf(format, args...))
}

// Took returns the time since the run began, in milliseconds.
func (p *Progress) Took() Duration { return Duration(time.Since(p.Started).Round(time.Millisecond)) }

// Within returns a context that ends after a limit, with a cause that says so.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
}
