// Package block is the disks of a simulated Talos machine: their names, the volumes on them, and how volumes are encrypted.
package block

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	blockpb "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"

	"github.com/slipway-platform/slipway/lab/vm"
)

// diskModel is the model name of QEMU's SCSI disks.
const diskModel = "QEMU HARDDISK"

// Disks are the disks that a machine has while it is powered on. It is safe for concurrent use.
type Disks struct {
	plugged atomic.Pointer[map[string]*vm.Disk] // by drive key; the map does not change
	grown   sync.Map                            // sizes of disks that have grown since the power-on, int64 by drive key
}

// Now returns the disks that the machine has now, by drive key. The map does not change.
func (d *Disks) Now() map[string]*vm.Disk { return *d.plugged.Load() }

// Has tells whether the machine has a disk now, by the path of its device.
func (d *Disks) Has(device string) bool {
	for key := range d.Now() {
		if DeviceName(key) == device {
			return true
		}
	}
	return false
}

// Plug replaces all disks. Before the first call, there is no map of disks.
func (d *Disks) Plug(disks map[string]*vm.Disk) { d.plugged.Store(&disks) }

// Grow tells that a disk has grown.
func (d *Disks) Grow(key string, size int64) { d.grown.Store(key, size) }

// Size is the size of a disk in bytes, as the kernel sees it.
func (d *Disks) Size(key string, disk *vm.Disk) uint64 {
	grown, _ := d.grown.Load(key)
	size, _ := grown.(int64)
	return uint64(max(disk.Size, size))
}

// driveNumber splits a drive key: scsi1 is the second drive on the bus scsi.
func driveNumber(key string) (bus string, number int, ok bool) {
	for _, bus := range []string{"scsi", "sata", "virtio"} {
		if digits, found := strings.CutPrefix(key, bus); found {
			n, err := strconv.Atoi(digits)
			return bus, n, err == nil && n >= 0 && n < 26
		}
	}
	return "", 0, false
}

// DeviceName is the kernel's name of a drive: scsi0 and sata0 are /dev/sda, virtio1 is /dev/vdb. It is empty if the
// drive is not a disk.
func DeviceName(key string) string {
	bus, n, ok := driveNumber(key)
	if !ok {
		return ""
	}
	device := "sd"
	if bus == "virtio" {
		device = "vd"
	}
	return "/dev/" + device + string(rune('a'+n))
}

// symlinks are the stable names that udev gives a disk.
func symlinks(key string, d *vm.Disk) []string {
	bus, n, ok := driveNumber(key)
	serial := d.Serial
	if serial == "" {
		serial = "drive-" + key
	}
	switch {
	case !ok:
		return nil
	case bus == "scsi":
		return []string{
			"/dev/disk/by-diskseq/" + strconv.Itoa(n+1),
			"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_" + serial,
			"/dev/disk/by-path/pci-0000:09:" + strconv.FormatInt(int64(n+1), 16) + ".0-scsi-0:0:0:" + strconv.Itoa(n),
		}
	case bus == "virtio" && d.Serial != "":
		return []string{"/dev/disk/by-id/virtio-" + d.Serial}
	}
	return nil
}

// Linked returns the machine's disk with a link in /dev/disk/by-id; nil if it has none.
func (d *Disks) Linked(link string) any {
	for key, disk := range d.Now() {
		if strings.HasPrefix(link, "/dev/disk/by-id/") && DeviceName(key) != "" && slices.Contains(symlinks(key, disk), link) {
			return disk
		}
	}
	return nil
}

// diskKeys returns the keys of disks in order of device name.
func diskKeys(disks map[string]*vm.Disk) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		if DeviceName(key) != "" {
			out = append(out, key)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(DeviceName(a), DeviceName(b)) })
	return out
}

// diskProto is a disk in the form that the expressions of disk selectors read.
func diskProto(key string, d *vm.Disk, size uint64) *blockpb.DiskSpec {
	return &blockpb.DiskSpec{
		DevPath: DeviceName(key), Size: size, Model: diskModel, Serial: d.Serial, Transport: "virtio",
		SectorSize: 512, IoSize: 512, Symlinks: symlinks(key, d), SubSystem: "/sys/class/block",
	}
}

// ForInstall returns the disk that machine.install selects.
func (d *Disks) ForInstall(install configconfig.Install) (key string, disk *vm.Disk, err error) {
	if install == nil {
		return "", nil, errors.New("no install instructions")
	}
	selector, err := install.DiskMatchExpression()
	if err != nil {
		return "", nil, err
	}
	disks := d.Now()
	for _, key := range diskKeys(disks) {
		device := DeviceName(key)
		if selector != nil {
			proto := diskProto(key, disks[key], d.Size(key, disks[key]))
			matches, err := selector.EvalBool(celenv.DiskLocator(), map[string]any{"disk": proto, "system_disk": false})
			if err != nil {
				return "", nil, err
			}
			if matches {
				return key, disks[key], nil
			}
		} else if device == install.Disk() || slices.Contains(symlinks(key, disks[key]), install.Disk()) {
			return key, disks[key], nil
		}
	}
	return "", nil, fmt.Errorf("machine.install.disk: %q does not exist on this machine", install.Disk())
}
