package talos

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcdCluster is what one bootstrap founded. Guarded by site.mu.
type etcdCluster struct {
	id           string // fit for a directory name
	members      []*member
	leader       *member
	term         uint64
	index        uint64
	controlPlane ControlPlane // nil unless it runs
	stopped      chan struct{}
	ready        bool
}

// member is a member of etcd: its data lies in an installation.
type member struct {
	id      uint64
	name    string
	address netip.Addr
	learner bool
	removed bool
	boot    *boot // that runs it; nil while it is down
}

// runs tells whether the member's etcd works: it is up, and its data has not been wiped beneath it.
func (m *member) runs() bool { return m.boot != nil && m.boot.inst.etcd == m }

func newMember(b *boot) *member {
	return &member{id: binary.BigEndian.Uint64(randomBytes(8)), name: b.hostname, address: b.etcdAddress()}
}

// etcdAddress is the address that this node's member advertises. It expects the site's mutex.
func (b *boot) etcdAddress() netip.Addr {
	if own, err := etcdAddresses(b.config, addrsOf(b.addresses)); err == nil && len(own) > 0 {
		return own[0]
	}
	return b.primaryLocked()
}

// up returns the boots whose etcd runs, in order of address.
func (e *etcdCluster) up() []*boot {
	var out []*boot
	if e != nil {
		for _, m := range e.members {
			if m.runs() {
				out = append(out, m.boot)
			}
		}
	}
	return byAddress(out)
}

// quorum tells whether a majority of the voting members runs.
func (e *etcdCluster) quorum() bool {
	if e == nil {
		return false
	}
	voters, running := 0, 0
	for _, m := range e.members {
		if !m.learner {
			voters++
			if m.runs() {
				running++
			}
		}
	}
	return voters > 0 && running > voters/2
}

// elect gives the cluster a leader that runs, if it can have one.
func (e *etcdCluster) elect() {
	if !e.quorum() {
		e.leader = nil
		return
	}
	if e.leader != nil && e.leader.runs() && !e.leader.removed {
		return
	}
	for _, m := range e.members {
		if m.runs() && !m.learner {
			e.leader = m
			e.term++
			return
		}
	}
}

// spares tells whether etcd can do without a member: it is not the only one, and a majority is left.
func (e *etcdCluster) spares(m *member) bool {
	rest := slices.DeleteFunc(slices.Clone(e.members), func(o *member) bool { return o == m })
	return slices.Contains(e.members, m) && (&etcdCluster{members: rest}).quorum()
}

func (e *etcdCluster) hasLearner() bool {
	return slices.ContainsFunc(e.members, func(m *member) bool { return m.learner })
}

// remove takes a member out; the cluster goes on without it.
func (e *etcdCluster) remove(m *member) {
	m.removed = true
	e.members = slices.DeleteFunc(e.members, func(o *member) bool { return o == m })
}

// etcdService is etcd on a control plane: it waits for bootstrap or joins, runs, and becomes a voter.
func (b *boot) etcdService() serviceSpec {
	var running *member // the data directory may be emptied while etcd still stops
	return serviceSpec{
		id: "etcd", depends: []string{"cri"},
		prepare: func(ctx context.Context, _ sayService) error { return b.awaitEtcd(ctx) },
		started: func() error {
			b.site.mu.Lock()
			defer b.site.mu.Unlock()
			own := b.inst.etcd
			if own == nil || own.removed {
				return errors.New("the member has been permanently removed from the cluster")
			}
			running = own
			own.boot, own.name, own.address, b.etcdUp = b, b.hostname, b.etcdAddress(), true
			b.site.change.notify()
			return nil
		},
		running: b.loseMember,
		healthy: func(ctx context.Context) error {
			err := b.awaitVoter(ctx)
			if err == nil {
				b.applyManifests()
			}
			return err
		},
		unhealthy: func() string {
			b.site.mu.Lock()
			defer b.site.mu.Unlock()
			if own := b.inst.etcd; own != nil && own.learner {
				return "etcdserver: rpc not supported for learner"
			}
			return "context deadline exceeded"
		},
		stopped: func() {
			b.site.mu.Lock()
			running.boot = nil
			b.etcdUp = false
			b.site.mu.Unlock()
			b.publishEtcdMember(nil)
			b.site.change.notify()
		},
	}
}

// awaitEtcd waits until there is data to run on: from an earlier boot, from Bootstrap, or by joining the cluster as a
// learner, of which etcd takes one at a time.
func (b *boot) awaitEtcd(ctx context.Context) error {
	b.setEtcdWaits(true)
	defer b.setEtcdWaits(false)
	said, hinted := "", false
	return b.site.until(ctx, func() bool {
		if b.inst.etcd != nil {
			return true
		}
		if !hinted {
			b.printk("[talos] %s", waitingToJoin)
			b.printk("[talos] [%s]", b.primaryLocked())
			hinted = true
		}
		e := b.cluster.etcd
		problem := b.joinProblem()
		if problem != "" && problem != said {
			b.printk("[talos] retrying error: %s", problem)
		}
		if said = problem; e == nil || problem != "" {
			return false
		}
		m := newMember(b)
		m.learner = true
		e.members = append(e.members, m)
		e.index++
		b.inst.etcd = m
		return true
	})
}

// waitingToJoin is the hint that Talos prints while etcd of a control plane is not bootstrapped and cannot join.
const waitingToJoin = "etcd is waiting to join the cluster, if this node is the first node in the cluster, please run `talosctl bootstrap` against one of the following IPs:"

// joinProblem is what keeps etcd of this node from joining, in the words of Talos and etcd; "" if nothing does. The
// caller holds the site's mutex.
func (b *boot) joinProblem() string {
	e := b.cluster.etcd
	switch {
	case e == nil:
		return ""
	case b.memberMissing():
		return "error adding member: etcdserver: unhealthy cluster"
	case !e.quorum():
		return "error getting etcd member list: etcdserver: no leader"
	case e.hasLearner():
		return "error adding member: etcdserver: too many learner members in cluster"
	}
	return ""
}

// removeOwnMember removes this node's member from the cluster and empties its data directory; false if etcd would
// refuse that.
func (b *boot) removeOwnMember() bool {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	own, e := b.inst.etcd, b.cluster.etcd
	if own == nil || e == nil || !e.spares(own) {
		return false
	}
	e.remove(own)
	e.index++
	b.inst.etcd = nil
	e.elect()
	b.site.change.notify()
	return true
}

func (b *boot) setEtcdWaits(waits bool) {
	b.site.mu.Lock()
	b.etcdWaits = waits
	b.site.mu.Unlock()
}

// awaitVoter lets a learner catch up and promotes it.
func (b *boot) awaitVoter(ctx context.Context) error {
	b.site.mu.Lock()
	own := b.inst.etcd
	learner := own != nil && own.learner
	b.site.mu.Unlock()
	if learner {
		if err := sleep(ctx, b.site.cfg.Latency.EtcdJoin); err != nil {
			return err
		}
		said := false
		err := b.site.until(ctx, func() bool {
			if !b.cluster.etcd.quorum() {
				return false
			}
			if b.staysLearner() {
				if !said {
					const notReady = "can only promote a learner member which is in sync with leader"
					b.printk("[talos] retrying error: etcdserver: " + notReady)
					b.logs.add("etcd", etcdLine("warn", "learner is not ready to be promoted", fmt.Sprintf(`"error":"etcdserver: %s"`, notReady)))
				}
				said = true
				return false
			}
			own.learner = false
			return true
		})
		if err != nil {
			return err
		}
		b.printk("[talos] successfully promoted etcd member")
		b.logs.add("etcd", etcdLine("info", "promoted to a voting member", ""))
	}
	b.publishEtcdMember(own)
	b.site.change.notify()
	return b.site.until(ctx, func() bool { return b.cluster.etcd.quorum() })
}

// bootstrapEtcd founds a cluster on this node. An etcd cluster none of whose members runs does not stand in the way:
// its machines may be gone for good.
func (b *boot) bootstrapEtcd() error {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	switch {
	case !b.config.Machine().Type().IsControlPlane():
		return status.Error(codes.FailedPrecondition, "bootstrap can only be performed on a control plane node")
	case b.inst.etcd != nil:
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	case len(b.cluster.etcd.up()) > 0:
		// This node is about to join; a second cluster beside the first is not modelled.
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	case !b.etcdWaits:
		return status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}
	m := newMember(b)
	b.inst.etcd = m
	b.cluster.etcd = &etcdCluster{
		id:      b.cluster.name + "-" + hex.EncodeToString(randomBytes(4)),
		members: []*member{m}, leader: m, term: 2, index: 1,
	}
	b.printk("[talos] bootstrap request received")
	b.site.change.notify()
	return nil
}

// leaveEtcd takes this node's member out of the cluster and empties its data directory.
func (b *boot) leaveEtcd() error {
	b.site.mu.Lock()
	own, e := b.inst.etcd, b.cluster.etcd
	if own == nil {
		b.site.mu.Unlock()
		return errors.New("etcd is not running")
	}
	if e != nil && slices.Contains(e.members, own) {
		if !e.quorum() {
			b.site.mu.Unlock()
			return errors.New("etcdserver: no leader")
		}
		e.remove(own)
		if len(e.members) == 0 {
			b.cluster.etcd = nil
		} else {
			e.elect()
		}
	}
	b.inst.etcd = nil
	b.site.mu.Unlock()
	b.site.change.notify()
	return b.services.want("etcd", false)
}
