package talos

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/vm"
)

// followFaults wakes whoever waits for the site to change when a fault comes or goes.
func (s *Site) followFaults() {
	for {
		changed := s.cfg.Faults.Changed()
		s.change.notify()
		select {
		case <-changed:
		case <-s.ctx.Done():
			return
		}
	}
}

// suffers returns the fault of a kind that bites the machine, by the name of its VM or of its node.
func (m *guest) suffers(kind fault.Kind) (fault.Fault, bool) {
	m.site.mu.Lock()
	node := m.nodeName()
	m.site.mu.Unlock()
	return m.suffersAs(kind, node)
}

// suffersAs is suffers for callers that hold the site's mutex and know the node's name.
func (m *guest) suffersAs(kind fault.Kind, node string) (fault.Fault, bool) {
	return m.site.cfg.Faults.Find(kind, func(target string) bool {
		return target == m.hw.Name || node != "" && target == node
	})
}

// nodeName is the name in the machine's configuration, empty before it has one. It expects the site's mutex.
func (m *guest) nodeName() string {
	if m.boot != nil && m.boot.hostname != "" {
		return m.boot.hostname
	}
	for _, d := range m.hw.Disks {
		if inst := installedOn(d); inst != nil {
			return hostname(inst.config, inst.nodeID)
		}
	}
	return ""
}

// stuckMedium is what the machine boots while the fault StuckMaintenance keeps it from reading what is on its disk:
// the medium in its drive, or the Talos on the disk itself without a configuration. It expects the site's mutex.
func (m *guest) stuckMedium(disk *vm.Disk) *vm.Image {
	if m.hw.ISO != nil {
		return m.hw.ISO
	}
	inst := installedOn(disk)
	return &vm.Image{Version: inst.version, Schematic: inst.schematic, Platform: inst.platform, Extensions: inst.extensions}
}

// stuck tells whether this is a maintenance mode that the machine should not be in.
func (b *boot) stuck() bool {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	return b.iso != nil && anyInstalled(b.m.hw)
}

// unstuck ends a maintenance mode that only a fault keeps the machine in, as the reset does that comes with a repair.
func (b *boot) unstuck() {
	for {
		changed := b.site.cfg.Faults.Changed()
		if _, on := b.m.suffers(fault.StuckMaintenance); !on {
			b.end(sequence{name: "reboot", then: endReboot})
			return
		}
		select {
		case <-changed:
		case <-b.ctx.Done():
			return
		}
	}
}

// failBoot is a boot sequence that fails and ends in a reboot.
func (b *boot) failBoot(reason string) ending {
	if reason == "" {
		reason = "error running phase 8 in boot sequence: task 1/1: failed, failed to mount EPHEMERAL: structure needs cleaning"
	}
	b.printk("[talos] boot sequence: failed: %s", reason)
	b.events.sequenceError("boot", errBoot(reason))
	b.m.setReason("reboots for ever: " + reason)
	b.setStage(StageBooting)
	timer := time.NewTimer(b.site.cfg.Latency.Install)
	defer timer.Stop()
	select {
	case seq := <-b.ending:
		return b.stop(seq)
	case <-b.ctx.Done():
		return endOff
	case <-timer.C:
		b.printk("[talos] rebooting")
		return endReboot
	}
}

// refused is the error that the fault ApplyRefused answers a configuration with, nil without one.
func (b *boot) refused() error {
	f, on := b.m.suffers(fault.ApplyRefused)
	if !on {
		return nil
	}
	if f.Detail != "" {
		return errBoot(f.Detail)
	}
	return errBoot("1 error occurred:\n\t* the machine configuration is refused by this node\n\n")
}

// losesReply breaks the connections of the API's clients in the place of a reply to Bootstrap.
func (b *boot) losesReply() error {
	if _, on := b.m.suffers(fault.BootstrapReplyLost); !on {
		return nil
	}
	b.clients.cut()
	// Only another node's apid that passed the request on sees this; a client sees its connection end.
	return status.Error(codes.Unavailable, "error reading from server: EOF")
}

// errBoot is an error whose words are all there is to it.
type errBoot string

func (e errBoot) Error() string { return string(e) }

// clients are the connections to a node's API. The zero value has none.
type clients struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// cut ends all of them.
func (c *clients) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close() // it may have ended by itself
	}
}

// listener is a listener whose connections can be cut.
type listener struct {
	net.Listener
	clients *clients
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &client{Conn: conn, clients: l.clients}
	l.clients.mu.Lock()
	defer l.clients.mu.Unlock()
	if l.clients.open == nil {
		l.clients.open = map[net.Conn]struct{}{}
	}
	l.clients.open[conn] = struct{}{}
	return tracked, nil
}

type client struct {
	net.Conn
	clients *clients
}

func (c *client) Close() error {
	c.clients.mu.Lock()
	delete(c.clients.open, c.Conn)
	c.clients.mu.Unlock()
	return c.Conn.Close()
}

// loseMember takes a member that runs out of etcd while the fault EtcdMemberMissing is on, as if its disk had been
// lost: etcd on this node starts anew, with nothing, and cannot join. It stays where etcd would refuse its removal.
func (b *boot) loseMember(ctx context.Context) {
	for {
		changed := b.site.cfg.Faults.Changed()
		if _, on := b.m.suffers(fault.EtcdMemberMissing); on && b.dropMember() {
			b.services.restart("etcd")
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (b *boot) dropMember() bool {
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

// joinProblem is what keeps this node's etcd from joining, in the words of Talos and etcd; "" if nothing does. It
// expects the site's mutex.
func (b *boot) joinProblem() string {
	e := b.cluster.etcd
	if _, missing := b.m.suffersAs(fault.EtcdMemberMissing, b.hostname); missing && e != nil {
		return "error adding member: etcdserver: unhealthy cluster"
	}
	switch {
	case e == nil:
		return ""
	case !e.quorum():
		return "error getting etcd member list: etcdserver: no leader"
	case e.hasLearner():
		return "error adding member: etcdserver: too many learner members in cluster"
	}
	return ""
}

// waitingToJoin is the hint that Talos prints while etcd of a control plane has nothing to run on.
const waitingToJoin = "etcd is waiting to join the cluster, if this node is the first node in the cluster, please run `talosctl bootstrap` against one of the following IPs:"

// sayService reports a service's state; see serviceSpec.prepare.
type sayService = func(machine.ServiceStateEvent_Action, string)
