package tools

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	heartbeat     = 10 * time.Second       // longest time without output where lines are printed
	redrawEvery   = 500 * time.Millisecond // on a terminal
	terminalWidth = 100                    // if a terminal does not tell; longer lines are cut
)

// progress prints the progress of building several tools. Its methods may be called from several goroutines.
type progress struct {
	out      io.Writer
	terminal int // width; 0 means that lines are printed
	now      func() time.Time

	writing sync.Mutex // of out

	mu      sync.Mutex // of all below
	began   time.Time
	order   []Item
	running map[string]time.Time // name → start
	done    map[string]Record
	failed  int
	doneCPU time.Duration // expected CPU time of all finished tools

	stop chan struct{}
	idle sync.WaitGroup
}

func newProgress(out io.Writer, missing []Item) *progress {
	p := &progress{
		out: out, now: time.Now, order: missing,
		running: map[string]time.Time{}, done: map[string]Record{}, stop: make(chan struct{}),
	}
	if out == nil {
		p.out = io.Discard
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = terminalWidth
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			p.terminal = width
		}
	}
	return p
}

// begin prints what will be built and starts the heartbeat.
func (p *progress) begin() {
	p.began = p.now()
	names := make([]string, 0, len(p.order))
	for _, item := range p.order {
		names = append(names, item.Tool.Name)
	}
	p.line("tools: building %d (%s)", len(p.order), strings.Join(names, ", "))
	p.line("tools: about %s from scratch, much less where the Go compile cache is warm",
		about(Estimate(p.order)/time.Duration(runtime.NumCPU())))
	interval := heartbeat
	if p.terminal > 0 {
		interval = redrawEvery
	}
	p.idle.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.beat()
			}
		}
	})
}

// start records that the build of a tool starts.
func (p *progress) start(name string) {
	p.mu.Lock()
	p.running[name] = p.now()
	n := len(p.done) + p.failed + len(p.running)
	p.mu.Unlock()
	p.line("tools: [%d/%d] %s ...", n, len(p.order), name)
}

// finish records how a tool's build ended.
func (p *progress) finish(name string, r Record, err error) {
	p.mu.Lock()
	wall := p.now().Sub(p.running[name])
	delete(p.running, name)
	if err != nil {
		p.failed++
	} else {
		p.done[name] = r
	}
	for _, item := range p.order {
		if item.Tool.Name == name {
			p.doneCPU += item.Tool.CPU
		}
	}
	p.mu.Unlock()
	if err != nil {
		p.line("tools: %s failed after %s", name, seconds(wall))
		return
	}
	p.line("tools: %s %s in %s (CPU %s, %s)", name, r.Version, seconds(wall), seconds(r.CPU), megabytes(r.Bytes))
}

// end stops the heartbeat and prints the totals.
func (p *progress) end() {
	close(p.stop)
	p.idle.Wait()
	var cpu time.Duration
	var bytes int64
	for _, r := range p.done {
		cpu += r.CPU
		bytes += r.Bytes
	}
	p.line("tools: built %d of %d in %s; CPU %s, disk %s", len(p.done), len(p.order), seconds(p.now().Sub(p.began)), seconds(cpu),
		megabytes(bytes))
}

// beat prints the current state.
func (p *progress) beat() {
	text := p.status()
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.terminal == 0 {
		fmt.Fprintln(p.out, text)
		return
	}
	if len(text) >= p.terminal {
		text = text[:p.terminal-1]
	}
	fmt.Fprintf(p.out, "\r%s\x1b[K", text)
}

// status is one line: what runs, for how long, and how much of the whole is done.
func (p *progress) status() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var running []string
	for _, item := range p.order {
		if start, ok := p.running[item.Tool.Name]; ok {
			running = append(running, fmt.Sprintf("%s %s", item.Tool.Name, seconds(now.Sub(start))))
		}
	}
	elapsed := now.Sub(p.began)
	pace, total := "of about", p.total(elapsed)
	if elapsed > total {
		pace = "where an idle machine takes about"
	}
	return fmt.Sprintf("tools: [%d/%d done] %s; %s %s %s",
		len(p.done)+p.failed, len(p.order), strings.Join(running, ", "), seconds(elapsed), pace, about(total))
}

// total estimates the wall time of the whole build: at first from the table's CPU times and the number of cores, later
// from the speed so far.
func (p *progress) total(elapsed time.Duration) time.Duration {
	all := Estimate(p.order)
	total := all / time.Duration(runtime.NumCPU())
	if p.doneCPU > 0 && all > 0 {
		// Running tools count as half done.
		progressed := p.doneCPU
		for _, item := range p.order {
			if _, ok := p.running[item.Tool.Name]; ok {
				progressed += item.Tool.CPU / 2
			}
		}
		total = time.Duration(float64(elapsed) * float64(all) / float64(progressed))
	}
	return total
}

func (p *progress) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.terminal > 0 {
		text = "\r\x1b[K" + text
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	fmt.Fprintln(p.out, text)
}

// seconds writes a duration in whole seconds.
func seconds(d time.Duration) string {
	return d.Round(time.Second).String()
}

// about prints an estimated duration, rounded.
func about(d time.Duration) string {
	if d < time.Minute {
		return "a minute"
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

func megabytes(bytes int64) string {
	return fmt.Sprintf("%d MB", (bytes+500_000)/1_000_000)
}
