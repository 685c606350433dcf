package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// containerLog is a container's log in the format of a container runtime: "TIME stdout F LINE". It is safe for
// concurrent use. What is written after Close is lost.
type containerLog struct {
	mu     sync.Mutex
	file   *os.File
	rest   []byte // an unfinished line
	closed bool
}

func createLog(path string) (*containerLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &containerLog{file: f}, nil
}

// Write appends text, which need not end with a line.
func (l *containerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(p), nil
	}
	l.rest = append(l.rest, p...)
	var out bytes.Buffer
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			break
		}
		fmt.Fprintf(&out, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), l.rest[:end])
		l.rest = l.rest[end+1:]
	}
	if _, err := l.file.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the log and finishes an unfinished line.
func (l *containerLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if len(l.rest) > 0 {
		fmt.Fprintf(l.file, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), l.rest)
	}
	return l.file.Close()
}

// logOptions are the options of `kubectl logs`.
type logOptions struct {
	follow, timestamps bool
	tail               int // lines; negative: all
	since              time.Time
}

// readLog copies a log to w. With follow it continues until ended is closed and everything is written, or ctx ends.
func readLog(ctx context.Context, path string, o logOptions, ended <-chan struct{}, w io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	var kept []string
	for { // what has been written so far
		line, err := r.ReadString('\n')
		if err != nil {
			if line != "" {
				if _, err := f.Seek(-int64(len(line)), io.SeekCurrent); err != nil {
					return err
				}
				r.Reset(f)
			}
			break
		}
		if text, ok := o.line(line); ok {
			kept = append(kept, text)
			if o.tail >= 0 && len(kept) > o.tail {
				kept = kept[1:]
			}
		}
	}
	if _, err := io.WriteString(w, strings.Join(kept, "")); err != nil || !o.follow {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	partial := ""
	for last := false; ; {
		line, err := r.ReadString('\n')
		partial += line
		if err == nil {
			if text, ok := o.line(partial); ok {
				if _, err := io.WriteString(w, text); err != nil {
					return err
				}
			}
			partial = ""
			continue
		}
		if last {
			return nil
		}
		if f, ok := w.(interface{ Flush() }); ok {
			f.Flush()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			last = true
		case <-tick.C:
		}
	}
}

// line removes the runtime's prefix; false if the line is too old.
func (o logOptions) line(raw string) (string, bool) {
	stamp, rest, ok := strings.Cut(raw, " stdout F ")
	if !ok {
		return raw, true
	}
	if !o.since.IsZero() {
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil && at.Before(o.since) {
			return "", false
		}
	}
	if o.timestamps {
		return stamp + " " + rest, true
	}
	return rest, true
}
