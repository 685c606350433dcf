package talos

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/lab/talos/trustd"
)

// cluster is the set of nodes with the same cluster.id. It holds their etcd, control plane and virtual IP.
type cluster struct {
	site *Site
	key  string
	name string
	vip  netip.Addr // invalid: the cluster has none

	// guarded by site.mu
	etcd  *etcdCluster
	nodes map[string]*affiliate // by node identity

	// reconcileMu serializes what is done without the site's mutex; it guards the fields below.
	reconcileMu sync.Mutex
	current     *etcdCluster // its control plane runs; nil: no control plane runs
	suspended   bool
	serving     map[netip.Addr]served
	leaders     map[string]*leader // of kube-controller-manager and kube-scheduler
	access      *access            // of pods to Talos's API; nil: none
	holder      *boot              // the node that has the virtual IP
	vipReleased time.Time
}

// clusterKey identifies a cluster: its id, or a hash of its machine CAs.
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

// joinCluster adds the node to its cluster. The first node creates the cluster.
func (b *boot) joinCluster(cfg config.Provider) {
	s := b.site
	vip, hasVIP := b.virtualIP(cfg)
	key := clusterKey(cfg)
	s.mu.Lock()
	c := s.clusters[key]
	if c == nil {
		c = &cluster{site: s, key: key, name: cfg.Cluster().Name(), nodes: map[string]*affiliate{},
			serving: map[netip.Addr]served{}, leaders: map[string]*leader{}}
		s.clusters[key] = c
		s.wg.Go(c.run)
	}
	if hasVIP && cfg.Machine().Type().IsControlPlane() {
		c.vip = vip
	}
	b.cluster = c
	c.nodes[b.inst.nodeID] = &affiliate{
		hostname: b.hostname, addresses: addrsOf(b.routed()), nodeType: cfg.Machine().Type(), version: b.version, boot: b,
	}
	s.mu.Unlock()
	s.change.Notify()
}

// run reconciles the cluster after every change until the site is closed. Closing powers all machines off, so the last
// reconciliation stops everything.
func (c *cluster) run() {
	for {
		changed := c.site.change.Changed()
		c.reconcile()
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

// idle tells whether no machine of the site runs.
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

// reconcile adapts the control plane to the running machines: it runs while an etcd member runs, works while etcd has
// quorum, and answers on the addresses of the machines whose member votes and whose API server runs. On the virtual IP answers the API
// server of the machine that has it, or none.
func (c *cluster) reconcile() {
	c.reconcileMu.Lock()
	defer c.reconcileMu.Unlock()
	s := c.site

	s.mu.Lock()
	e := c.etcd
	up := e.up()
	quorum := e.quorum()
	var first *boot
	want := map[netip.Addr]config.Provider{}
	if len(up) > 0 {
		first = up[0]
		e.elect()
	}
	// The API server of a node whose etcd has no leader, or with which it has no connection, answers nobody. A real one runs, is not ready,
	// and answers some requests from its cache.
	up = slices.DeleteFunc(up, func(b *boot) bool { return e.cutOff(b.inst.etcd) })
	for _, b := range up {
		a, cfg, own := b.primaryLocked(), b.runs(k8s.APIServerID), b.inst.etcd
		if a.IsValid() && cfg != nil && !own.learner && b.static[k8s.APIServerID].etcd == own.process {
			want[a] = cfg
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
	servers := slices.SortedFunc(maps.Keys(want), netip.Addr.Compare)
	c.electVIP(up, quorum)
	if c.holder != nil {
		s.mu.Lock()
		cfg := want[c.holder.primaryLocked()]
		s.mu.Unlock()
		if cfg != nil {
			want[c.vip] = cfg
		}
	}
	c.serve(want)
	c.elect(up)
	c.giveAccess(up, servers)
	c.publishMembers()
}

// byAddress sorts boots by address, so that elections are deterministic.
func byAddress(boots []*boot) []*boot {
	slices.SortFunc(boots, func(a, b *boot) int { return a.primaryLocked().Compare(b.primaryLocked()) })
	return boots
}
