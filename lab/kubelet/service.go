package kubelet

import (
	"context"
	"errors"
	"sync"
)

// Service is the kubelet of a machine, under any name. It restarts the kubelet when a fault changes the node's name or
// ends.
type Service struct {
	c      *Cluster
	o      NodeOptions
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	k  *Kubelet
}

// Run starts a machine's kubelet, as Start does, and restarts it when a fault changes its name.
func (c *Cluster) Run(ctx context.Context, o NodeOptions) (*Service, error) {
	s := &Service{c: c, o: o, done: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(c.life)
	go func() {
		defer close(s.done)
		s.follow(ctx)
	}()
	return s, nil
}

// Stop ends the kubelet as a crash would; see Kubelet.Stop.
func (s *Service) Stop() { s.end((*Kubelet).Stop) }

// Kill ends the kubelet and every container; see Kubelet.Kill.
func (s *Service) Kill() { s.end((*Kubelet).Kill) }

// Shutdown ends the pods gracefully, then the kubelet; see Kubelet.Shutdown.
func (s *Service) Shutdown(ctx context.Context) { s.end(func(k *Kubelet) { k.Shutdown(ctx) }) }

// Cordon makes the node unschedulable; see Kubelet.Cordon.
func (s *Service) Cordon(ctx context.Context) error {
	return s.with(func(k *Kubelet) error { return k.Cordon(ctx) })
}

// Drain evicts the node's pods; see Kubelet.Drain.
func (s *Service) Drain(ctx context.Context, log func(string)) error {
	return s.with(func(k *Kubelet) error { return k.Drain(ctx, log) })
}

// StaticPodsChanged makes the kubelet look at its static pods again.
func (s *Service) StaticPodsChanged() {
	_ = s.with(func(k *Kubelet) error { k.StaticPodsChanged(); return nil })
}

// with calls the kubelet that runs.
func (s *Service) with(call func(*Kubelet) error) error {
	s.mu.Lock()
	k := s.k
	s.mu.Unlock()
	if k == nil {
		return errors.New("the kubelet does not run")
	}
	return call(k)
}

func (s *Service) end(how func(*Kubelet)) {
	s.cancel()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.k != nil {
		how(s.k)
		s.k = nil
	}
}

// start starts the kubelet under the name that it should have now.
func (s *Service) start(ctx context.Context) error {
	o := s.o
	o.declared, o.Name = s.o.Name, s.c.nodeName(s.o.Name)
	if o.Name != s.o.Name {
		s.o.logLine("Starting kubelet", "nodeName", o.Name)
	}
	k, err := s.c.Start(ctx, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.k = k
	return err
}

func (s *Service) follow(ctx context.Context) {
	for {
		changed := s.c.o.Faults.Changed()
		if err := s.adjust(ctx); err != nil && ctx.Err() == nil {
			s.c.log.Warn("kubelet not started again", "node", s.o.Name, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// adjust restarts the kubelet if its name must change. The pods of the node with the other name end.
func (s *Service) adjust(ctx context.Context) error {
	s.mu.Lock()
	k := s.k
	s.mu.Unlock()
	if k != nil {
		if k.o.Name == s.c.nodeName(s.o.Name) {
			return nil
		}
		k.Kill()
	}
	return s.start(ctx)
}
