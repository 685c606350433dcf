package process

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

// Backoff is the pause before the n-th restart (n from 1): 500 ms, doubled each time, at most 30 s. A real kubelet
// starts at 10 s, which is too long for a rehearsal.
func Backoff(n int) time.Duration {
	d := 500 * time.Millisecond
	for ; n > 1 && d < 30*time.Second; n-- {
		d *= 2
	}
	return min(d, 30*time.Second)
}

// Supervisor keeps one child running, as a kubelet keeps a static pod running.
type Supervisor struct {
	spec   Spec
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	current *Process
}

// Supervise starts the child, and restarts it with a backoff when it ends. It returns the error of the first start.
func Supervise(s Spec, log *slog.Logger) (*Supervisor, error) {
	p, err := Start(s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &Supervisor{spec: s, log: log, cancel: cancel, done: make(chan struct{}), ended: make(chan struct{}), current: p}
	go v.run(ctx, p)
	return v, nil
}

func (v *Supervisor) run(ctx context.Context, p *Process) {
	defer close(v.done)
	ended := sync.OnceFunc(func() { close(v.ended) })
	restarts := 0
	for {
		began := time.Now()
		if p != nil {
			select {
			case <-ctx.Done():
				return
			case <-p.Done():
			}
			ended()
			v.log.Warn("process ended by itself; restarting it", "cluster", v.spec.Cluster, "name", v.spec.Name, "exit", p.ExitCode(), "log",
				v.spec.Log)
		}
		if time.Since(began) > 5*time.Minute {
			restarts = 0
		}
		restarts++
		select {
		case <-ctx.Done():
			return
		case <-time.After(Backoff(restarts)):
		}
		next, err := Start(v.spec)
		if err != nil {
			v.log.Error("process does not start", "cluster", v.spec.Cluster, "name", v.spec.Name, "err", err)
		}
		p = next
		v.mu.Lock()
		v.current = p
		v.mu.Unlock()
	}
}

// Ended is closed once the child has ended by itself.
func (v *Supervisor) Ended() <-chan struct{} { return v.ended }

// Stop ends the supervision and the child: SIGTERM, then SIGKILL after grace.
func (v *Supervisor) Stop(grace time.Duration) {
	v.cancel()
	<-v.done
	v.mu.Lock()
	p := v.current
	v.mu.Unlock()
	if p != nil {
		p.Stop(context.Background(), grace)
	}
}

// Signal sends a signal to the child's group, if it runs.
func (v *Supervisor) Signal(sig syscall.Signal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != nil {
		v.current.signal(sig)
	}
}
