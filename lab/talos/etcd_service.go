package talos

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
	"github.com/slipway-platform/slipway/lab/talos/service"
)

// etcdService is etcd on a control plane: it waits for Bootstrap or joins, runs, and becomes a voting member.
func (b *boot) etcdService() service.Spec {
	var running *member // kept because the data directory can be emptied while etcd stops
	return service.Spec{
		ID: "etcd", Depends: []string{"cri"},
		Prepare: func(ctx context.Context, report service.Report) error {
			if err := b.awaitTime(ctx, report); err != nil {
				return err
			}
			if err := b.awaitEtcd(ctx); err != nil {
				return err
			}
			b.site.mu.Lock()
			cfg := b.config
			b.site.mu.Unlock()
			if err := kubernetes.Denied(b.version, "etcd", cfg.Cluster().Etcd().ExtraArgs()); err != nil {
				return err
			}
			if err := b.awaitEtcdPKI(ctx); err != nil {
				return err
			}
			return b.recoverEtcd(ctx)
		},
		Started: func() error {
			b.site.mu.Lock()
			defer b.site.mu.Unlock()
			own := b.inst.etcd
			if own == nil || own.removed {
				return errors.New("the member has been permanently removed from the cluster")
			}
			running = own
			own.boot, own.name, own.address, b.etcdUp = b, b.hostname, b.etcdAddress(), true
			own.process = &etcdProcess{Party: b.etcdFiles, peers: map[*etcdProcess]bool{}}
			b.cluster.etcd.connect()
			b.site.change.Notify()
			return nil
		},
		Running: b.loseMember,
		Healthy: func(ctx context.Context) error {
			err := b.awaitVoter(ctx)
			if err == nil {
				b.applyManifests()
			}
			return err
		},
		Watch: b.watchEtcd,
		Unhealthy: func() string {
			b.site.mu.Lock()
			defer b.site.mu.Unlock()
			if own := b.inst.etcd; own != nil && own.learner {
				return "etcdserver: rpc not supported for learner"
			}
			return "context deadline exceeded"
		},
		Stopped: func() {
			b.site.mu.Lock()
			running.boot = nil
			b.etcdUp = false
			b.site.mu.Unlock()
			b.publishEtcdMember(nil)
			b.site.change.Notify()
		},
	}
}

// awaitEtcd waits until etcd has data: from an earlier boot, from Bootstrap, or because it has joined the cluster as a
// learner. etcd accepts one learner at a time.
func (b *boot) awaitEtcd(ctx context.Context) error {
	b.setEtcdWaits(true)
	defer b.setEtcdWaits(false)
	reported, hinted := "", false
	return b.site.waitUntil(ctx, func() bool {
		if b.inst.etcd != nil || b.recovering != nil {
			return true
		}
		if !hinted {
			b.Printk("[talos] %s", waitingToJoin)
			b.Printk("[talos] [%s]", b.primaryLocked())
			hinted = true
		}
		e := b.cluster.etcd
		problem := b.joinProblem()
		if problem != "" && problem != reported {
			b.Printk("[talos] retrying error: %s", problem)
		}
		if problem == unhealthyCluster {
			b.removeFormer() // Talos does so before etcd refuses the new member
		}
		if reported = problem; e == nil || problem != "" || b.etcdFiles.Issuer == nil {
			return false
		}
		b.removeFormer()
		e.elect()
		m := newMember(b)
		m.learner = true
		e.members = append(e.members, m)
		e.index++
		b.inst.etcd = m
		return true
	})
}

// removeFormer removes the members with the name of this node, whose place it takes if it was rebuilt. The caller holds the site's mutex.
func (b *boot) removeFormer() {
	for _, former := range b.cluster.etcd.named(b.hostname) {
		b.cluster.etcd.remove(former)
		b.cluster.etcd.index++
	}
}

// unhealthyCluster is etcd's refusal of a new member.
const unhealthyCluster = "error adding member: etcdserver: unhealthy cluster"

// waitingToJoin is the hint that Talos prints while etcd of a control plane is not bootstrapped and cannot join.
const waitingToJoin = "etcd is waiting to join the cluster, if this node is the first node in the cluster, " +
	"please run `talosctl bootstrap` against one of the following IPs:"

// joinProblem is the error that keeps etcd of this node from joining, in the words of Talos and etcd; empty if there is
// none. The caller holds the site's mutex.
func (b *boot) joinProblem() string {
	e := b.cluster.etcd
	switch {
	case e == nil:
		return ""
	case !e.quorum():
		return "error getting etcd member list: etcdserver: no leader"
	case b.etcdFiles.Issuer != nil && !slices.ContainsFunc(b.answering(false), e.follows):
		return "error getting etcd member list: context deadline exceeded"
	case !e.canLoseAll(e.named(b.hostname)):
		return "error removing self from the member list: etcdserver: re-configuration failed due to not enough started members"
	case b.memberMissing(), !e.takesMember(b.hostname):
		return unhealthyCluster
	case e.hasLearnerBut(b.hostname):
		return "error adding member: etcdserver: too many learner members in cluster"
	}
	return ""
}

// publishEtcdMember publishes the id of this node's member, or removes it if m is nil.
func (b *boot) publishEtcdMember(m *member) {
	r := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
	if m == nil {
		b.res.Remove(r.Metadata())
		return
	}
	r.TypedSpec().MemberID = etcd.FormatMemberID(m.id)
	b.res.Put(r)
}

func (b *boot) setEtcdWaits(waits bool) {
	b.site.mu.Lock()
	b.etcdWaits = waits
	b.site.mu.Unlock()
}

// awaitVoter promotes a learner after a while.
func (b *boot) awaitVoter(ctx context.Context) error {
	b.site.mu.Lock()
	own := b.inst.etcd
	learner := own != nil && own.learner
	b.site.mu.Unlock()
	if learner {
		promoted := b.site.cfg.Latency.Record.Begin("etcd: learner to voter", b.m.hw.Name)
		if err := sleep(ctx, b.site.cfg.Latency.EtcdJoin); err != nil {
			return err
		}
		promoted()
		reported := false
		err := b.site.waitUntil(ctx, func() bool {
			if !b.cluster.etcd.quorum() {
				return false
			}
			if b.staysLearner() || !b.cluster.etcd.follows(own) {
				if !reported {
					const notReady = "can only promote a learner member which is in sync with leader"
					b.Printk("[talos] retrying error: etcdserver: " + notReady)
					b.Write("etcd", etcdLine("warn", "learner is not ready to be promoted", fmt.Sprintf(`"error":"etcdserver: %s"`, notReady)))
				}
				reported = true
				return false
			}
			own.learner = false
			return true
		})
		if err != nil {
			return err
		}
		b.Printk("[talos] successfully promoted etcd member")
		b.Write("etcd", etcdLine("info", "promoted to a voting member", ""))
	}
	b.publishEtcdMember(own)
	b.site.change.Notify()
	return b.site.waitUntil(ctx, func() bool { return b.cluster.etcd.quorum() && !b.cluster.etcd.cutOff(own) })
}

// bootstrapEtcd creates an etcd cluster on this node. It replaces an etcd cluster without running members, because
// their machines may have been destroyed.
func (b *boot) bootstrapEtcd(from *recovery) error {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	switch {
	case !b.config.Machine().Type().IsControlPlane():
		return status.Error(codes.FailedPrecondition, "bootstrap can only be performed on a control plane node")
	case b.inst.etcd != nil:
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	case len(b.cluster.etcd.up()) > 0:
		// This node is about to join. Real Talos would create a second etcd cluster, which is not modelled.
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	case !b.etcdWaits && !b.recoveryFailed:
		return status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}
	b.Printk("[talos] bootstrap request received")
	if b.recoveryFailed {
		b.recoveryFailed = false
		b.site.wg.Go(func() { b.services.Restart("etcd") })
	}
	if from != nil {
		b.recovering = from
	} else {
		b.createEtcd(b.cluster.newEtcdID())
	}
	b.site.change.Notify()
	return nil
}

// newEtcdID is the id of another bootstrap.
func (c *cluster) newEtcdID() string { return c.name + "-" + hex.EncodeToString(randomBytes(4)) }

// createEtcd creates an etcd cluster with this node as its only member. The caller holds the site's mutex.
func (b *boot) createEtcd(id string) {
	m := newMember(b)
	b.inst.etcd = m
	b.cluster.etcd = &etcdCluster{id: id, members: []*member{m}, leader: m, term: 2, index: 1}
}

// leaveEtcd removes this node's member from the cluster and empties its data directory.
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
		if !slices.ContainsFunc(b.answering(false), e.follows) {
			b.site.mu.Unlock()
			return context.DeadlineExceeded
		}
		if err := e.removeError(own); err != nil {
			b.site.mu.Unlock()
			return err
		}
		e.remove(own)
		e.elect()
	}
	b.inst.etcd = nil
	b.site.mu.Unlock()
	b.site.change.Notify()
	return b.services.SetWanted("etcd", false)
}

// removeOwnMember removes this node's member from the cluster and empties its data directory. It returns false if etcd
// would refuse that.
func (b *boot) removeOwnMember() bool {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	own, e := b.inst.etcd, b.cluster.etcd
	if own == nil || e == nil || !e.canLose(own) {
		return false
	}
	e.remove(own)
	e.index++
	b.inst.etcd = nil
	e.elect()
	b.site.change.Notify()
	return true
}

// etcdAddress is the address that this node's member advertises. The caller holds the site's mutex.
func (b *boot) etcdAddress() netip.Addr {
	if own, err := etcdAddresses(b.config, addrsOf(b.addresses)); err == nil && len(own) > 0 {
		return own[0]
	}
	return b.primaryLocked()
}
