package talos

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/lab/talos/block"
	"github.com/slipway-platform/slipway/lab/vm"
)

// agentExtension is the system extension with the QEMU guest agent.
const agentExtension = "siderolabs/qemu-guest-agent"

// Stage is the state of a machine.
type Stage string

// The stages of a machine.
const (
	StageOff         Stage = "off"
	StageFirmware    Stage = "firmware" // powered on, no operating system runs yet
	StageMaintenance Stage = "maintenance"
	StageInstalling  Stage = "installing"
	StageBooting     Stage = "booting" // configured, not all services are up
	StageRunning     Stage = "running"
	StageDraining    Stage = "draining" // a sequence evicts its pods; services run
	StageStopping    Stage = "stopping" // before a reboot or power-off
	StageFailed      Stage = "failed"   // a sequence has failed, and the machine will reboot
)

// ending tells what follows the end of a boot.
type ending int

const (
	endOff ending = iota
	endReboot
	endKexec // the kernel starts the Talos on the boot's disk; the firmware, and so the boot order, has no part in it
)

// guest is a VM from power-on to power-off; it implements vm.Guest.
type guest struct {
	site *Site
	hw   vm.Hardware
	log  *slog.Logger

	disks block.Disks

	ctx      context.Context // ends at power-off
	powerOff context.CancelFunc
	done     chan struct{}
	kexec    *vm.Disk // what the kernel has loaded, while no operating system runs; nil: the firmware looks for a drive. Only run uses it.

	// guarded by site.mu
	boot   *boot // nil while no operating system runs
	off    bool
	reason string
}

func newGuest(s *Site, hw vm.Hardware) *guest {
	m := &guest{site: s, hw: hw, log: s.cfg.Log.With("vm", hw.Name), done: make(chan struct{})}
	m.disks.Plug(hw.Disks)
	m.ctx, m.powerOff = context.WithCancel(s.ctx)
	return m
}

// hardware is the machine's hardware now.
func (m *guest) hardware() vm.Hardware {
	hw := m.hw
	hw.Disks = m.disks.Now()
	return hw
}

// Plug implements vm.Guest.
func (m *guest) Plug(disks map[string]*vm.Disk) {
	former := m.disks.Now()
	m.disks.Plug(disks)
	m.site.mu.Lock()
	defer m.site.mu.Unlock()
	if b := m.boot; b != nil {
		m.site.wg.Go(func() { b.devices.Changed(former, disks) })
	}
}

// run boots the machine repeatedly until it is off.
func (m *guest) run() {
	defer close(m.done)
	defer m.powerOff()
	for m.ctx.Err() == nil {
		if m.bootOnce() == endOff {
			break
		}
	}
	m.site.mu.Lock()
	m.off, m.boot = true, nil
	m.site.mu.Unlock()
	m.log.Info("machine is off")
	m.site.change.Notify()
}

// bootOnce runs the firmware, unless the former boot has loaded a kernel, and then one boot of the operating system.
func (m *guest) bootOnce() ending {
	disk, iso := m.kexec, (*vm.Image)(nil)
	m.kexec = nil
	if m.firmware(disk != nil) != nil {
		return endOff
	}
	m.site.mu.Lock()
	if disk == nil {
		disk, iso = bootSource(m.hardware())
	}
	halted := iso != nil && anyInstalled(m.hardware())
	if image := m.stuckImage(disk); image != nil {
		disk, iso = nil, image
	}
	m.site.mu.Unlock()
	switch {
	case halted:
		b := newBoot(m, nil, iso)
		b.halts = true
		return b.run()
	case disk != nil:
		return newBoot(m, disk, nil).run()
	case iso != nil:
		return newBoot(m, nil, iso).run()
	default:
		return m.halt("no bootable device")
	}
}

// firmware takes the time from power-on until the kernel runs. A kexec takes as long here, and no fault of the VM stops it.
func (m *guest) firmware(kexec bool) error {
	if !kexec {
		if err := m.awaitBootable(); err != nil {
			return err
		}
	}
	defer m.site.cfg.Latency.Record.Begin("boot", m.hw.Name)()
	return sleep(m.ctx, m.site.cfg.Latency.Boot)
}

func (m *guest) halt(reason string) ending {
	m.setReason(reason)
	<-m.ctx.Done()
	return endOff
}

func (m *guest) setReason(reason string) {
	m.site.mu.Lock()
	defer m.site.mu.Unlock()
	if reason != "" && reason != m.reason {
		m.log.Warn("machine does not boot", "reason", reason)
	}
	m.reason = reason
}

// nodeName is the name in the machine's configuration, empty before it has one. The caller holds the site's mutex.
func (m *guest) nodeName() string {
	if m.boot != nil && m.boot.hostname != "" {
		return m.boot.hostname
	}
	for _, d := range m.disks.Now() {
		if inst := installedOn(d); inst != nil {
			return hostname(inst.config, inst.nodeID)
		}
	}
	return ""
}

// PowerOff implements vm.Guest. The machine's addresses go first, so that nothing that ends on it says farewell: whoever is connected finds
// out by himself, or by the reset from the machine's next boot.
func (m *guest) PowerOff() {
	m.site.mu.Lock()
	b := m.boot
	var addresses []netip.Prefix
	if b != nil {
		addresses, b.addresses = b.addresses, nil
	}
	m.site.mu.Unlock()
	if b != nil {
		b.removeAddresses(addresses)
	}
	m.powerOff()
	<-m.done
}

// Shutdown implements vm.Guest.
func (m *guest) Shutdown(ctx context.Context) error {
	m.site.mu.Lock()
	b := m.boot
	m.site.mu.Unlock()
	if b != nil {
		b.begin(&sequence{name: "shutdown", then: endOff, takeover: true}) // by ACPI, Talos drains nothing
	}
	// Firmware without an operating system does not react to ACPI. Then only the caller's deadline ends the wait.
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done implements vm.Guest.
func (m *guest) Done() <-chan struct{} { return m.done }

// Grown implements vm.Guest. The kernel sees the size at once, Talos uses the space at its next boot.
func (m *guest) Grown(key string, size int64) {
	m.disks.Grow(key, size)
	m.site.mu.Lock()
	defer m.site.mu.Unlock()
	if b := m.boot; b != nil {
		m.site.wg.Go(func() { b.devices.Grown(key) })
	}
}

// Moved implements vm.Guest. The guest does not notice.
func (m *guest) Moved(host string) {
	m.site.mu.Lock()
	defer m.site.mu.Unlock()
	m.hw.Host = host
}

// Interfaces implements vm.Guest.
func (m *guest) Interfaces() ([]vm.Interface, bool) {
	m.site.mu.Lock()
	defer m.site.mu.Unlock()
	b := m.boot
	if b == nil || !m.hw.Agent || !slices.Contains(b.extensions, agentExtension) || len(m.hw.NICs) == 0 {
		return nil, false
	}
	return []vm.Interface{
		{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("::1/128")}},
		{Name: linkName, MAC: m.hw.NICs[0].MAC, Addresses: b.allAddresses()},
	}, true
}

// status returns the machine's status. The caller holds the site's mutex.
func (m *guest) status() MachineStatus {
	st := MachineStatus{VMID: m.hw.ID, Name: m.hw.Name, Host: m.hw.Host, Stage: StageFirmware, Reason: m.reason}
	if m.off {
		st.Stage = StageOff
	}
	b := m.boot
	if b == nil {
		return st
	}
	st.Stage, st.Addresses, st.Hostname, st.Version = b.stage, b.allAddresses(), b.hostname, b.version
	if b.config != nil {
		st.Cluster, st.Type = b.config.Cluster().Name(), b.config.Machine().Type().String()
	}
	st.VIP = b.vip.IsValid()
	st.Services = b.services.Status()
	return st
}
