package talos

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/trustd"
)

// cluster is what nodes with the same cluster.id form: etcd's members, the control plane and the virtual IP.
type cluster struct {
	site *Site
	key  string
	name string
	vip  netip.Addr // invalid without

	// guarded by site.mu
	etcd  *etcdCluster
	nodes map[string]*affiliate // by node identity

	// act serializes what is done outside the site's mutex; the fields below belong to it.
	act       sync.Mutex
	current   *etcdCluster // whose control plane runs
	suspended bool
	serving   map[netip.Addr]func()
	holder    *boot // of the virtual IP
	lost      time.Time
}

// clusterKey tells clusters apart: by their id, or by their machine CA.
func clusterKey(cfg config.Provider) string {
	if id := cfg.Cluster().ID(); id != "" {
		return id
	}
	var all []byte
	for _, crt := range trustd.MachineCAs(cfg) {
		all = append(all, crt...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:])
}

// joinCluster makes the node part of its cluster, which the first one founds.
func (b *boot) joinCluster(cfg config.Provider) {
	s := b.site
	vip, hasVIP := b.virtualIP(cfg)
	key := clusterKey(cfg)
	s.mu.Lock()
	c := s.clusters[key]
	if c == nil {
		c = &cluster{site: s, key: key, name: cfg.Cluster().Name(), nodes: map[string]*affiliate{}, serving: map[netip.Addr]func(){}}
		s.clusters[key] = c
		s.wg.Go(c.run)
	}
	if hasVIP && cfg.Machine().Type().IsControlPlane() {
		c.vip = vip
	}
	b.cluster = c
	c.nodes[b.inst.nodeID] = &affiliate{
		hostname: b.hostname, addresses: addrsOf(b.addresses), nodeType: cfg.Machine().Type(), version: b.version, boot: b,
	}
	s.mu.Unlock()
	s.change.notify()
}

// run settles the cluster after every change until the site is closed. When the site is closed, all machines are off,
// so that the last settling stops everything.
func (c *cluster) run() {
	for {
		changed := c.site.change.changed()
		c.settle()
		if c.site.ctx.Err() != nil && c.idle() {
			return
		}
		var closing <-chan struct{}
		if c.site.ctx.Err() == nil {
			closing = c.site.ctx.Done()
		}
		select {
		case <-changed:
		case <-closing:
		}
	}
}

// idle reports that no machine of the site runs any more.
func (c *cluster) idle() bool {
	c.site.mu.Lock()
	defer c.site.mu.Unlock()
	for _, m := range c.site.machines {
		if m.boot != nil {
			return false
		}
	}
	return true
}

// settle brings about what follows from the machines that run: the control plane runs while a member of etcd does,
// works while a majority does, and answers on the addresses of the machines that run it.
func (c *cluster) settle() {
	c.act.Lock()
	defer c.act.Unlock()
	s := c.site

	s.mu.Lock()
	e := c.etcd
	up := e.up()
	quorum := e.quorum()
	var first *boot
	want := map[netip.Addr]bool{}
	if len(up) > 0 {
		first = up[0]
		e.elect()
	}
	for _, b := range up {
		if a := b.primaryLocked(); a.IsValid() && !b.inst.etcd.learner {
			want[a] = true
		}
	}
	ready := e != nil && e.ready
	s.mu.Unlock()

	if !ready {
		clear(want)
	}
	if c.current != nil && (c.current != e || first == nil) {
		c.stopControlPlane()
	}
	if c.current == nil && quorum {
		c.startControlPlane(e, first)
	}
	if c.current != nil && c.suspended == quorum {
		c.suspended = !quorum
		if c.suspended {
			s.cfg.Log.Warn("etcd has lost its quorum", "cluster", c.name)
			c.current.controlPlane.Suspend()
		} else {
			c.current.controlPlane.Resume()
		}
	}
	c.electVIP(up, quorum)
	if c.holder != nil && len(want) > 0 {
		want[c.vip] = true
	}
	c.serve(want)
	c.publishMembers()
}

// byAddress orders boots, so that elections come out the same.
func byAddress(boots []*boot) []*boot {
	slices.SortFunc(boots, func(a, b *boot) int { return a.primaryLocked().Compare(b.primaryLocked()) })
	return boots
}
