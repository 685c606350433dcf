package qemu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/vm"
)

// connectsWithin is how long QEMU may take from its start until it has opened the connections of its monitor and of the agent.
const connectsWithin = time.Minute

// guest is a VM from power-on to power-off. It implements vm.Guest.
type guest struct {
	host *Host
	hw   vm.Hardware
	log  *slog.Logger

	ctx      context.Context // ends at power-off
	powerOff context.CancelFunc
	done     chan struct{}

	mu        sync.Mutex
	ready     chan struct{}       // closed while QEMU runs
	disks     map[string]*vm.Disk // that the VM has now
	monitor   *monitor            // nil while QEMU does not run
	agent     *agent              // nil while QEMU does not run, and without an agent's channel
	ended     string              // why the guest ended, as QEMU says, e.g. guest-shutdown
	unplugged map[string]chan struct{}
	reason    string
}

func newGuest(h *Host, hw vm.Hardware) *guest {
	g := &guest{
		host: h, hw: hw, log: h.cfg.Log.With("vm", hw.Name), ready: make(chan struct{}), done: make(chan struct{}), disks: hw.Disks,
		unplugged: map[string]chan struct{}{},
	}
	g.ctx, g.powerOff = context.WithCancel(h.ctx)
	return g
}

// run runs QEMU until the guest is off. QEMU ends at a reboot only where it has booted the kernel itself.
func (g *guest) run() {
	defer close(g.done)
	defer g.powerOff()
	for {
		err := g.runOnce()
		g.mu.Lock()
		ended := g.ended
		if err != nil && g.ctx.Err() == nil {
			g.reason = err.Error()
		}
		g.mu.Unlock()
		switch {
		case g.ctx.Err() != nil:
			return
		case err != nil:
			g.log.Error("machine ended", "err", err)
			return
		case ended != "guest-reset":
			g.log.Info("machine is off", "reason", ended)
			return
		}
	}
}

// runOnce runs QEMU in a folder of its own.
func (g *guest) runOnce() error {
	for _, dir := range []string{g.host.cfg.Dir, g.host.cfg.Logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(g.host.cfg.Dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	taps, err := g.taps()
	defer func() {
		for _, tap := range taps {
			if err := tap.Close(); err != nil {
				g.log.Warn("card", "err", err)
			}
		}
	}()
	if err != nil {
		return err
	}
	hw := g.hardware()
	p, err := g.assemble(dir, hw)
	if err != nil {
		return err
	}
	for _, tap := range taps {
		p.taps = append(p.taps, tap.Name())
	}
	return g.execute(dir, hw, p)
}

// hardware is the VM's hardware with the disks that it has now.
func (g *guest) hardware() vm.Hardware {
	g.mu.Lock()
	defer g.mu.Unlock()
	hw := g.hw
	hw.Disks = g.disks
	return hw
}

// taps makes a tap for each network card.
func (g *guest) taps() (taps []*network.Tap, err error) {
	for range g.hw.NICs {
		tap, err := g.host.cfg.Taps.NewTap()
		if err != nil {
			return taps, err
		}
		taps = append(taps, tap)
	}
	return taps, nil
}

// assemble makes the files of the VM.
func (g *guest) assemble(dir string, hw vm.Hardware) (p parts, err error) {
	h := g.host
	p = parts{disks: map[string]string{}, firmware: h.cfg.Firmware, console: h.console(hw)}
	for key, disk := range hw.Disks {
		if p.disks[key], err = diskFile(g.ctx, h.disks(), disk); err != nil {
			return p, err
		}
	}
	if hw.CloudInit != nil {
		if p.cloudInit, err = writeCloudInit(g.ctx, dir, hw); err != nil {
			return p, err
		}
	}
	image, err := h.inserted(hw)
	if err != nil { // an image that does not boot is not an error of the hypervisor
		g.log.Warn("CD-ROM does not boot", "err", err)
		g.setReason(err.Error())
	}
	if image != nil {
		p.iso = image.iso()
	}
	if hw.UEFI {
		p.variables, err = variables(h.disks(), dir, h.cfg.Firmware, hw.EFI)
		return p, err
	}
	p.kernel, err = g.kernel(dir, hw, p, image)
	return p, err
}

// kernel returns what a VM with a BIOS boots in place of the image in its CD-ROM drive, which boots by UEFI only; nil if the VM boots from
// a disk.
func (g *guest) kernel(dir string, hw vm.Hardware, p parts, image *Built) (*kernel, error) {
	for _, key := range hw.BootOrder {
		if path, is := p.disks[key]; is {
			if boots, err := bootsByBIOS(g.ctx, path, dir); err != nil || boots {
				return nil, err
			}
		}
		if image != nil && key == hw.ISO.Drive {
			line, err := image.commandLine()
			return &kernel{image.kernel(), image.initramfs(), line}, err
		}
	}
	return nil, nil
}

func (g *guest) setReason(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reason = reason
}

// execute runs QEMU until it ends.
func (g *guest) execute(dir string, hw vm.Hardware, p parts) error {
	names := []string{monitorSocket}
	if hw.Agent {
		names = append(names, agentSocket)
	}
	listeners, err := listen(dir, names)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	log := filepath.Join(g.host.cfg.Logs, fmt.Sprintf("qemu-%s-%d.log", hw.Name, hw.ID))
	child, err := process.Start(process.Spec{
		Name: "qemu", Node: hw.Name, Path: g.host.cfg.Program, Args: arguments(hw, p), Env: os.Environ(), Dir: dir, Log: log,
		Table: g.host.cfg.Processes,
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(g.ctx, child.Kill)()
	err = g.connect(listeners, child)
	if err != nil {
		child.Kill()
		return fmt.Errorf("%w; see %s", err, log)
	}
	<-child.Done()
	g.disconnect()
	if code := child.ExitCode(); code != 0 {
		return fmt.Errorf("QEMU ended with exit code %d; see %s", code, log)
	}
	return nil
}

func listen(dir string, names []string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, name := range names {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// connect accepts QEMU's connections: of its monitor, then of the agent.
func (g *guest) connect(listeners []net.Listener, child *process.Process) error {
	ctx, cancel := context.WithTimeout(g.ctx, connectsWithin)
	defer cancel()
	go func() { // the connections that QEMU does not open any more
		select {
		case <-child.Done():
			closeAll(listeners)
		case <-ctx.Done():
			closeAll(listeners)
		}
	}()
	g.mu.Lock()
	g.ended = ""
	g.mu.Unlock()
	var conns []net.Conn
	var err error
	for _, l := range listeners {
		conn, accepted := l.Accept()
		if accepted == nil {
			conns = append(conns, conn)
		}
		err = errors.Join(err, accepted)
	}
	var m *monitor
	if err == nil {
		m, err = newMonitor(ctx, conns[0], g.event)
	}
	if err != nil {
		for _, conn := range conns {
			_ = conn.Close()
		}
		return fmt.Errorf("QEMU has not started: %w", err)
	}
	g.mu.Lock()
	g.monitor = m
	if len(conns) > 1 {
		g.agent = newAgent(conns[1])
	}
	close(g.ready)
	g.mu.Unlock()
	g.log.Info("machine runs", "console", g.host.console(g.hw))
	return nil
}

// disconnect closes the connections of a QEMU that has ended, after its last event.
func (g *guest) disconnect() {
	g.mu.Lock()
	m, a := g.monitor, g.agent
	g.monitor, g.agent, g.ready = nil, nil, make(chan struct{})
	g.mu.Unlock()
	<-m.ended
	_ = m.conn.Close()
	if a != nil {
		_ = a.conn.Close()
	}
}

// event follows what QEMU tells.
func (g *guest) event(a answer) {
	g.log.Debug("QEMU", "event", a.Event, "reason", a.Data.Reason)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch a.Event {
	case "SHUTDOWN":
		g.ended = a.Data.Reason
	case "DEVICE_DELETED":
		if gone := g.unplugged[a.Data.Device]; gone != nil {
			close(gone)
			delete(g.unplugged, a.Data.Device)
		}
	}
}

// running returns the monitor once QEMU runs, also after a reboot at which QEMU starts again; nil if the guest is off.
func (g *guest) running(ctx context.Context) *monitor {
	for {
		g.mu.Lock()
		m, ready := g.monitor, g.ready
		g.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-ready:
		case <-g.done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// Shutdown implements vm.Guest.
func (g *guest) Shutdown(ctx context.Context) error {
	if m := g.running(ctx); m != nil {
		if err := m.execute(ctx, "system_powerdown", nil); err != nil && !errors.Is(err, errMonitorEnded) {
			return err
		}
	}
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PowerOff implements vm.Guest.
func (g *guest) PowerOff() {
	g.powerOff()
	<-g.done
}

// Interfaces implements vm.Guest.
func (g *guest) Interfaces() ([]vm.Interface, bool) {
	g.mu.Lock()
	a := g.agent
	g.mu.Unlock()
	if a == nil {
		return nil, false
	}
	interfaces, err := a.interfaces()
	if err != nil {
		g.log.Debug("guest agent", "err", err)
	}
	return interfaces, err == nil
}

// Moved implements vm.Guest. The guest does not notice.
func (g *guest) Moved(string) {}

// Done implements vm.Guest.
func (g *guest) Done() <-chan struct{} { return g.done }

// Grown implements vm.Guest.
func (g *guest) Grown(key string, size int64) {
	g.change("grow "+key, func(ctx context.Context, m *monitor) error {
		return m.execute(ctx, "block_resize", map[string]any{"node-name": node(key), "size": size})
	})
}

// Plug implements vm.Guest. Only SCSI disks come and go while the guest runs; others do at the next power-on.
func (g *guest) Plug(disks map[string]*vm.Disk) {
	g.mu.Lock()
	former := g.disks
	g.disks = disks
	g.mu.Unlock()
	g.change("plug", func(ctx context.Context, m *monitor) error {
		var errs []error
		for _, key := range changed(former, disks) {
			errs = append(errs, g.unplug(ctx, m, key))
		}
		for _, key := range changed(disks, former) {
			errs = append(errs, g.plug(ctx, m, key, disks[key]))
		}
		return errors.Join(errs...)
	})
}

// changed returns the drive keys of the SCSI disks that others does not have, sorted.
func changed(disks, others map[string]*vm.Disk) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(disks)), func(key string) bool {
		return disks[key] == others[key] || !strings.HasPrefix(key, "scsi")
	})
}

// changesWithin is how long a guest may take to give a device back.
const changesWithin = time.Minute

// change does something in the background, because the hypervisor holds its lock. An error is in the log.
func (g *guest) change(what string, do func(context.Context, *monitor) error) {
	g.host.wg.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, changesWithin)
		defer cancel()
		m := g.running(ctx)
		if m == nil {
			return
		}
		if err := do(ctx, m); err != nil {
			g.log.Warn(what, "err", err)
		}
	})
}

func (g *guest) plug(ctx context.Context, m *monitor, key string, disk *vm.Disk) error {
	path, err := diskFile(ctx, g.host.disks(), disk)
	if err != nil {
		return err
	}
	if err := m.execute(ctx, "blockdev-add", blockNode(key, path)); err != nil {
		return err
	}
	return m.execute(ctx, "device_add", diskDevice(g.hw, key, disk.Serial))
}

// unplug takes a disk away. The guest has to agree, before its content can be removed.
func (g *guest) unplug(ctx context.Context, m *monitor, key string) error {
	gone := make(chan struct{})
	g.mu.Lock()
	g.unplugged[key] = gone
	g.mu.Unlock()
	if err := m.execute(ctx, "device_del", map[string]any{"id": key}); err != nil {
		return err
	}
	select {
	case <-gone:
		return m.execute(ctx, "blockdev-del", map[string]any{"node-name": node(key)})
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// status returns the VM's status.
func (g *guest) status() Status {
	s := Status{VMID: g.hw.ID, Stage: StageStarting, Console: g.host.console(g.hw)}
	if g.hw.CloudInit != nil {
		s.Addresses = g.hw.CloudInit.Addresses
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Reason = g.reason
	if g.monitor != nil {
		s.Stage = StageOn
	}
	select {
	case <-g.done:
		s.Stage = StageOff
	default:
	}
	return s
}
