package talos

import (
	"net/netip"
	"time"
)

func (c *cluster) startControlPlane(e *etcdCluster, on *boot) {
	s := c.site
	s.mu.Lock()
	cfg, address := on.config, on.primaryLocked()
	s.mu.Unlock()
	cp, err := s.cfg.Kubernetes.StartControlPlane(s.ctx, e.id, cfg, address)
	if err != nil {
		s.cfg.Log.Error("control plane does not start", "cluster", c.name, "error", err)
		time.AfterFunc(s.cfg.Latency.VIPFailover, s.change.notify)
		return
	}
	s.mu.Lock()
	e.controlPlane, e.ready = cp, false
	stopped := make(chan struct{})
	e.stopped = stopped
	s.mu.Unlock()
	c.current, c.suspended = e, false
	s.wg.Go(func() {
		select {
		case <-cp.Ready():
		case <-stopped:
			return
		}
		s.mu.Lock()
		e.ready = e.controlPlane == cp
		var stale []*boot // kubelets that are connected to processes that have ended
		for _, m := range s.machines {
			if b := m.boot; b != nil && b.cluster == c && b.kubeletUp {
				stale = append(stale, b)
			}
		}
		s.mu.Unlock()
		for _, b := range stale {
			b.services.restart("kubelet")
		}
		s.change.notify()
	})
}

func (c *cluster) stopControlPlane() {
	s := c.site
	c.serve(nil)
	e := c.current
	c.current, c.suspended = nil, false
	s.mu.Lock()
	cp := e.controlPlane
	close(e.stopped)
	e.controlPlane, e.ready = nil, false
	s.mu.Unlock()
	cp.Stop()
}

// serve makes the Kubernetes API answer on these addresses and no others.
func (c *cluster) serve(want map[netip.Addr]bool) {
	for a, stop := range c.serving {
		if !want[a] {
			stop()
			delete(c.serving, a)
		}
	}
	if c.current == nil {
		return
	}
	for a := range want {
		if c.serving[a] != nil {
			continue
		}
		stop, err := c.current.controlPlane.Serve(a)
		if err != nil {
			c.site.cfg.Log.Error("kubernetes API does not answer", "cluster", c.name, "address", a, "error", err)
			time.AfterFunc(c.site.cfg.Latency.VIPFailover, c.site.change.notify)
			continue
		}
		c.serving[a] = stop
	}
}
