package talos

import (
	"net/netip"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
)

func (c *cluster) startControlPlane(e *etcdCluster, on *boot) {
	s := c.site
	s.mu.Lock()
	cfg, version, address := on.config, on.version, on.primaryLocked()
	s.mu.Unlock()
	cp, err := s.cfg.Kubernetes.StartControlPlane(s.ctx, e.id, cfg, version, address)
	if err != nil {
		s.cfg.Log.Error("control plane does not start", "cluster", c.name, "error", err)
		time.AfterFunc(s.cfg.Latency.VIPFailover, s.change.Notify)
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
			b.services.Restart("kubelet")
		}
		s.change.Notify()
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

// served is an address on which an API server answers.
type served struct {
	stop func()
	cfg  config.Provider
}

// serve makes API servers answer on these addresses and no others, each with its control plane's configuration.
func (c *cluster) serve(want map[netip.Addr]config.Provider) {
	for a, s := range c.serving {
		if want[a] != s.cfg {
			s.stop()
			delete(c.serving, a)
		}
	}
	if c.current == nil {
		return
	}
	for a, cfg := range want {
		if c.serving[a].stop != nil {
			continue
		}
		stop, err := c.current.controlPlane.Serve(a, cfg)
		if err != nil {
			c.site.cfg.Log.Error("kubernetes API does not answer", "cluster", c.name, "address", a, "error", err)
			time.AfterFunc(c.site.cfg.Latency.VIPFailover, c.site.change.Notify)
			continue
		}
		c.serving[a] = served{stop, cfg}
	}
}

// leader is the node whose kube-controller-manager or kube-scheduler works.
type leader struct {
	boot *boot
	cfg  config.Provider
}

// elect decides on which node kube-controller-manager and kube-scheduler work. A leader stays so until its pod ends.
func (c *cluster) elect(up []*boot) {
	if c.current == nil {
		clear(c.leaders)
		return
	}
	for _, name := range []string{k8s.ControllerManagerID, k8s.SchedulerID} {
		former := c.leaders[name]
		var next *leader
		c.site.mu.Lock()
		for _, b := range up {
			cfg := b.runs(name)
			if cfg != nil && (next == nil || former != nil && b == former.boot) {
				next = &leader{b, cfg}
			}
		}
		c.site.mu.Unlock()
		switch {
		case next == nil && former == nil:
		case next == nil:
			delete(c.leaders, name)
			c.current.controlPlane.Manage(name, nil)
		case former == nil || *former != *next:
			c.leaders[name] = next
			c.current.controlPlane.Manage(name, next.cfg)
		}
	}
}

// access is the node that gives pods access to Talos's API, and where the API of Kubernetes answers.
type access struct {
	leader

	servers []netip.Addr
}

// giveAccess decides which node gives pods access to Talos's API. As with the lock in etcd that Talos's controllers wait for, it stays so
// while it runs and its configuration allows it. Addresses are those of the nodes whose API server answers: Talos takes them from
// Kubernetes.
func (c *cluster) giveAccess(up []*boot, servers []netip.Addr) {
	if c.current == nil {
		c.access = nil
		return
	}
	var next *access
	c.site.mu.Lock()
	for _, b := range up {
		if kubernetes.GivesAccess(b.config) && len(servers) > 0 && (next == nil || c.access != nil && b == c.access.boot) {
			next = &access{leader{b, b.config}, servers}
		}
	}
	c.site.mu.Unlock()
	switch {
	case next == nil && c.access == nil:
		return
	case next == nil:
		c.current.controlPlane.ManageTalosAPI(nil, nil)
	case c.access == nil || next.leader != c.access.leader || !slices.Equal(next.servers, c.access.servers):
		c.current.controlPlane.ManageTalosAPI(next.cfg, next.servers)
	}
	c.access = next
}
