package talos

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/slipway-platform/slipway/lab/talos/apid"
	"github.com/slipway-platform/slipway/lab/talos/block"
	"github.com/slipway-platform/slipway/lab/talos/cosi"
	"github.com/slipway-platform/slipway/lab/talos/journal"
	"github.com/slipway-platform/slipway/lab/talos/service"
	"github.com/slipway-platform/slipway/lab/talos/trustd"
	"github.com/slipway-platform/slipway/lab/vm"
)

// boot is one run of the operating system. A reboot ends it.
type boot struct {
	journal.Journal

	m        *guest
	site     *Site
	log      *slog.Logger
	id       string // as in /proc/sys/kernel/random/boot_id
	began    time.Time
	disk     *vm.Disk
	iso      *vm.Image
	halts    bool // the image finds Talos on a disk
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	res      *cosi.Resources
	services *service.Manager
	devices  *block.Devices
	requests chan *sequence       // the sequence that runs next
	applied  chan config.Provider // maintenance mode: the accepted configuration
	api      *apid.Server         // of a configured node; set under site.mu before machined answers

	// guarded by site.mu
	stage          Stage
	version        string
	entry          string // that it was booted from; "" in maintenance mode
	schematic      string
	extensions     []string
	hostname       string
	addresses      []netip.Prefix // without the virtual IP
	routes         []string       // ids of those that are published
	vip            netip.Prefix   // held virtual IP
	resigned       bool           // from the election of the virtual IP, with its pods, before it ended
	accumulated    []netip.Prefix // all addresses that it has had, in Talos's order
	inst           *installation  // nil in maintenance mode
	config         config.Provider
	files          map[string]string // of the configuration, by path
	cluster        *cluster
	identity       *trustd.Identity  // of the configured node's API; nil before it has one
	machined       *grpc.ClientConn  // the configured node's API, once apid runs
	apiSocket      *bufconn.Listener // where the node's own services reach apid, once it runs
	etcdUp         bool              // etcd runs
	etcdWaits      bool              // etcd waits for bootstrap or for a cluster to join
	etcdFiles      trustd.Party      // what the files of etcd's PKI hold; empty before they are written
	synced         bool              // a time server has answered
	recoveryFailed bool
	recovering     *recovery // what the next start of etcd makes its data from; nil: nothing
	kubeletUp      bool
	downloaded     map[string][]byte // contents of the manifests by URL, by id
	kubelet        Kubelet           // nil while it does not run
	ranKubelet     string            // minor release of the kubelet that has started last; "" before the first
	static         map[string]*staticPod
	sequence       *sequence           // the sequence that runs or comes next; nil while none does
	nodeStatus     *k8s.NodeStatusSpec // what the Node object says; nil before there is one

	statusMu    sync.Mutex      // one writer of the machine's status at a time; guards podStatuses
	podStatuses map[string]bool // the published statuses of static pods

	// members are the nodes that discovery has published, by name; the cluster's reconcileMu guards it.
	members   map[string]published
	downloads context.CancelFunc // ends the downloads of manifests; nil before the first
	revert    context.CancelFunc // cancels the pending roll-back of a configuration in try mode
}

func newBoot(m *guest, disk *vm.Disk, iso *vm.Image) *boot {
	b := &boot{
		m: m, site: m.site, log: m.log, id: uuid.NewString(), began: time.Now(), disk: disk, iso: iso,
		requests: make(chan *sequence, 1), applied: make(chan config.Provider, 1),
		stage: StageBooting, static: map[string]*staticPod{},
	}
	b.ctx, b.cancel = context.WithCancel(m.ctx)
	b.res = cosi.New(b.ctx)
	b.services = service.New(b.ctx, service.Node{
		Name: m.hw.Name, Go: b.wg.Go, Latency: m.site.cfg.Latency, Faults: m.site.cfg.Faults,
		Journal: &b.Journal, Resources: b.res, LogStart: b.logStart, LogFailure: b.logFailure,
	})
	return b
}

// run runs the operating system from kernel start to its end.
func (b *boot) run() ending {
	b.site.mu.Lock()
	b.m.boot = b
	node := block.Node{
		Disks: &b.m.disks, TPM: b.m.hw.TPM, UEFI: b.m.hw.UEFI, System: b.disk,
		Resources: b.res, Journal: &b.Journal, Lock: &b.site.mu,
		SecureBoot: func() bool { return b.inst.secureBoot },
	}
	if b.disk != nil {
		b.inst = installedOn(b.disk)
		node.Volumes = &b.inst.volumes
		b.version, b.schematic, b.extensions, b.entry = b.inst.version, b.inst.schematic, b.inst.extensions, b.inst.entry
	} else {
		b.version, b.schematic, b.extensions = b.iso.Version, b.iso.Schematic, b.iso.Extensions
	}
	b.devices = block.New(node)
	b.site.mu.Unlock()
	defer b.teardown()

	b.Printk("Linux version 6.18.5-talos (simulated) x86_64")
	b.Printk("Command line: talos.platform=nocloud console=tty1 console=ttyS0")
	b.Printk("[talos] task setupLogger (1/1): done, %s, machine %s", b.version, b.m.hw.Name)
	b.publishHardware()
	switch {
	case b.halts:
		b.addAddresses(ipv4First(b.cloudInit()))
		return b.hang("Talos is already installed to disk but booted from another media and talos.halt_if_installed kernel parameter is set")
	case b.inst == nil:
		return b.maintenance()
	}
	return b.installed()
}

// hang is a boot that goes no further. The machine has its addresses, and nothing listens there, until it is reset or shut down.
func (b *boot) hang(reason string) ending {
	b.Printk("[talos] %s", reason)
	b.m.setReason(reason)
	b.setStage(StageBooting)
	return b.awaitEnd()
}

// replyLimit is how long replies and streams delay the end of a node that stops in order.
const replyLimit = time.Second

// failBoot ends a boot sequence with an error and reboots after a while, as Talos does: into the former version, if the
// version has never run since its upgrade.
func (b *boot) failBoot(err error) ending {
	b.Printk("[talos] boot sequence: failed: %s", err)
	b.Events.SequenceError("boot", err)
	b.m.setReason("reboots for ever: " + err.Error())
	b.setStage(StageBooting)
	timer := time.NewTimer(b.site.cfg.Latency.Install)
	defer timer.Stop()
	select {
	case seq := <-b.requests:
		return b.stop(seq)
	case <-b.ctx.Done():
		return endOff
	case <-timer.C:
		b.revertUpgrade()
		b.Printk("[talos] rebooting")
		return endReboot
	}
}

// teardown ends everything that the boot started. Afterwards no address of the machine answers.
func (b *boot) teardown() {
	b.cancel()
	b.wg.Wait()
	b.site.mu.Lock()
	cluster := b.cluster
	b.machined, b.etcdUp, b.kubeletUp, b.kubelet = nil, false, false, nil
	b.m.boot = nil
	addresses := b.addresses
	b.addresses = nil // the others remember those of a node that is lost
	b.site.mu.Unlock()
	if cluster != nil {
		// The cluster first removes what it has put on this machine, for example the virtual IP.
		cluster.reconcile()
	}
	b.removeAddresses(addresses)
	b.site.change.Notify()
}

// setStage sets the machine's stage and publishes it.
func (b *boot) setStage(s Stage) {
	b.site.mu.Lock()
	changed := b.stage != s
	b.stage = s
	b.site.mu.Unlock()
	if changed {
		b.log.Info("machine stage", "stage", s)
	}
	b.publishStatus()
	b.site.change.Notify()
}
