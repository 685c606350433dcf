// Package journal holds what a Talos node writes while it runs: the log of the kernel, the logs of its services, and its events. It ends
// with the boot.
package journal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Journal is what one boot writes. The zero value is empty. It is safe for concurrent use.
type Journal struct {
	Kernel Log
	Events Events

	mu       sync.Mutex
	services map[string]*Log
}

// Printk adds a line to the kernel log, in the form that talosctl dmesg prints.
func (j *Journal) Printk(format string, args ...any) {
	now := time.Now()
	j.Kernel.add(fmt.Sprintf("user: warning: [%s]: %s\n", now.UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...)))
}

// Write adds a line to a service's log. A log exists once its service has started for the first time.
func (j *Journal) Write(service, line string) {
	j.mu.Lock()
	if j.services == nil {
		j.services = map[string]*Log{}
	}
	log := j.services[service]
	if log == nil {
		log = &Log{}
		j.services[service] = log
	}
	j.mu.Unlock()
	log.add(line + "\n")
}

// Service returns the log of a service, nil if there is none.
func (j *Journal) Service(id string) *Log {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.services[id]
}

// Services returns the services that have a log.
func (j *Journal) Services() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.services))
}

// keptLines is the number of lines that a log keeps.
const keptLines = 2000

// Log is a log that clients can follow.
type Log struct {
	change wait.Changes

	mu    sync.Mutex
	lines []string
	first int // number of lines dropped
}

func (l *Log) add(line string) {
	l.mu.Lock()
	l.lines = append(l.lines, line)
	if over := len(l.lines) - keptLines; over > 0 {
		l.lines = slices.Delete(l.lines, 0, over)
		l.first += over
	}
	l.mu.Unlock()
	l.change.Notify()
}

// Stream sends the last lines, all if tail is negative, and then each new one if follow is set.
func (l *Log) Stream(ctx context.Context, follow bool, tail int, send func(*common.Data) error) error {
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
