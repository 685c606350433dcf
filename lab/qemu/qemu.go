package qemu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/vm"
)

// program is the command that runs a VM.
const program = "qemu-system-x86_64"

// Firmware are the files of a UEFI firmware.
type Firmware struct {
	Code      string
	Variables string // as in a new machine; each VM has a copy
}

// ovmf is where Debian's package ovmf has its firmware.
var ovmf = Firmware{Code: "/usr/share/OVMF/OVMF_CODE_4M.fd", Variables: "/usr/share/OVMF/OVMF_VARS_4M.fd"}

// Config is what the VMs need from the lab.
type Config struct {
	Dir   string       // folder of the disks and sockets; its path must be short
	Logs  string       // folder of the logs
	Talos []Built      // whose images CD-ROM drives can have
	Taps  network.Taps // required

	Firmware  Firmware       // zero value: that of Debian's package ovmf
	Program   string         // of QEMU; "" means qemu-system-x86_64
	Processes *process.Table // nil: not listed
	Log       *slog.Logger   // nil: discarded
}

// Host runs VMs in QEMU. It implements vm.Firmware.
type Host struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	machines map[int]*guest // powered on at least once, by VM id
}

// Check returns nil if this computer can run VMs, or an error that names everything that is missing, with its packages.
func Check() error {
	var missing []string
	for name, where := range map[string]string{program: "qemu-system-x86", "qemu-img": "qemu-utils"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, where)
		}
	}
	if !slices.ContainsFunc(isoPrograms, func(name string) bool { _, err := exec.LookPath(name); return err == nil }) {
		missing = append(missing, "genisoimage")
	}
	if _, err := os.Stat(ovmf.Code); err != nil {
		missing = append(missing, "ovmf")
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("the real Talos needs QEMU: apt-get install --no-install-recommends %s", strings.Join(missing, " "))
}

// New returns a host without VMs. Close ends it.
func New(cfg Config) *Host {
	cfg.Program = cmp.Or(cfg.Program, program)
	cfg.Firmware = cmp.Or(cfg.Firmware, ovmf)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{cfg: cfg, machines: map[int]*guest{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// PowerOn implements vm.Firmware.
func (h *Host) PowerOn(hw vm.Hardware) vm.Guest {
	g := newGuest(h, hw)
	h.mu.Lock()
	h.machines[hw.ID] = g
	h.mu.Unlock()
	h.wg.Go(g.run)
	return g
}

// Close powers all VMs off and waits until that is done.
func (h *Host) Close() {
	h.cancel()
	h.wg.Wait()
}

// Stage is the state of a VM. What happens in the guest, the host does not see.
type Stage string

// The stages of a VM.
const (
	StageOff      Stage = "off"
	StageStarting Stage = "starting" // QEMU does not run yet
	StageOn       Stage = "on"
)

// Status is a VM as `lab status` shows it.
type Status struct {
	VMID      int
	Stage     Stage
	Reason    string         // why QEMU has ended or does not start
	Addresses []netip.Prefix // as declared on the cloud-init drive
	Console   string         // log of the serial port
}

// Machines returns the VMs that have been powered on at least once, sorted by VM id.
func (h *Host) Machines() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Status
	for _, g := range h.machines {
		out = append(out, g.status())
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Compare(a.VMID, b.VMID) })
	return out
}

// disks is the folder of the disks.
func (h *Host) disks() string { return filepath.Join(h.cfg.Dir, "disks") }

// console is the log of a VM's serial port.
func (h *Host) console(hw vm.Hardware) string {
	return filepath.Join(h.cfg.Logs, fmt.Sprintf("console-%s-%d.log", hw.Name, hw.ID))
}

// inserted returns the built Talos whose image is in a VM's CD-ROM drive, of the version that the drive declares; nil without a drive.
func (h *Host) inserted(hw vm.Hardware) (*Built, error) {
	if hw.ISO == nil {
		return nil, nil
	}
	if hw.ISO.SecureBoot {
		return nil, errors.New("no built Talos is signed, so Secure Boot does not boot it")
	}
	var versions []string
	for _, built := range h.cfg.Talos {
		if built.Version == hw.ISO.Version {
			return &built, nil
		}
		versions = append(versions, built.Version)
	}
	return nil, fmt.Errorf("the image in %s is of Talos %s, and built are %s", hw.ISO.Drive, hw.ISO.Version, strings.Join(versions, ", "))
}
