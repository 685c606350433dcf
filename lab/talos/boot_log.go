package talos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"

	"github.com/slipway-platform/slipway/lab/wait"
)

// keptLines is the number of lines that a log keeps.
const keptLines = 2000

// logBuffer is a log that clients can follow.
type logBuffer struct {
	change wait.Changes

	mu    sync.Mutex
	lines []string
	first int // number of lines dropped
}

func newLogBuffer() *logBuffer { return &logBuffer{} }

func (l *logBuffer) add(line string) {
	l.mu.Lock()
	l.lines = append(l.lines, line)
	if over := len(l.lines) - keptLines; over > 0 {
		l.lines = slices.Delete(l.lines, 0, over)
		l.first += over
	}
	l.mu.Unlock()
	l.change.Notify()
}

// printk adds a line to the kernel log, in the form that talosctl dmesg prints.
func (b *boot) printk(format string, args ...any) {
	now := time.Now()
	b.kmsg.add(fmt.Sprintf("user: warning: [%s]: %s\n", now.UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...)))
}

// stream sends the last lines, all if tail is negative, and then each new one if follow is set.
func (l *logBuffer) stream(ctx context.Context, follow bool, tail int, send func(*common.Data) error) error {
	next := -1
	for {
		changed := l.change.Changed()
		l.mu.Lock()
		if next < 0 {
			next = l.first
			if tail >= 0 {
				next = max(l.first, l.first+len(l.lines)-tail)
			}
		}
		fresh := slices.Clone(l.lines[max(0, next-l.first):])
		next = l.first + len(l.lines)
		l.mu.Unlock()
		for _, line := range fresh {
			if err := send(&common.Data{Bytes: []byte(line)}); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
