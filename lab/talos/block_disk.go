package talos

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	blockpb "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/slipway-platform/slipway/lab/vm"
)

// diskModel is the model name of QEMU's SCSI disks.
const diskModel = "QEMU HARDDISK"

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

// deviceName is the kernel's name of a drive: scsi0 and sata0 are /dev/sda, virtio1 is /dev/vdb. It is empty if the
// drive is not a disk.
func deviceName(key string) string {
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

// diskLinks returns the links in /dev/disk/by-id of the machine's disks.
func (b *boot) diskLinks() []string {
	var links []string
	disks := b.m.disks()
	for _, key := range diskKeys(disks) {
		for _, link := range symlinks(key, disks[key]) {
			if strings.HasPrefix(link, "/dev/disk/by-id/") {
				links = append(links, link)
			}
		}
	}
	return links
}

// diskKeys returns the keys of disks in order of device name.
func diskKeys(disks map[string]*vm.Disk) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		if deviceName(key) != "" {
			out = append(out, key)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(deviceName(a), deviceName(b)) })
	return out
}

// diskProto is a disk in the form that the expressions of disk selectors read.
func diskProto(key string, d *vm.Disk, size uint64) *blockpb.DiskSpec {
	return &blockpb.DiskSpec{
		DevPath: deviceName(key), Size: size, Model: diskModel, Serial: d.Serial, Transport: "virtio",
		SectorSize: 512, IoSize: 512, Symlinks: symlinks(key, d), SubSystem: "/sys/class/block",
	}
}

// publishDisks publishes the disks, and the one that Talos runs from as system disk.
func (b *boot) publishDisks() {
	disks := b.m.disks()
	for _, key := range diskKeys(disks) {
		d, device := disks[key], deviceName(key)
		disk := block.NewDisk(block.NamespaceName, path.Base(device))
		spec := disk.TypedSpec()
		spec.DevPath, spec.Model, spec.Serial, spec.Transport, spec.SectorSize, spec.IOSize = device, diskModel, d.Serial, "virtio", 512, 512
		spec.SubSystem, spec.Symlinks = "/sys/class/block", symlinks(key, d)
		spec.SetSize(b.diskSize(key, d))
		b.res.Put(disk)
		if d == b.disk {
			system := block.NewSystemDisk(block.NamespaceName, block.SystemDiskID)
			system.TypedSpec().DiskID, system.TypedSpec().DevPath = path.Base(device), device
			b.res.Put(system)
		}
	}
	b.publishDiscovered()
}

// diskSize is the size of a disk in bytes, as the kernel sees it.
func (b *boot) diskSize(key string, d *vm.Disk) uint64 {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	return b.m.diskSize(key, d)
}

// diskGrown publishes that a disk has grown while the system runs. Volumes that are ready stay as they are until the next boot.
func (b *boot) diskGrown(key string) {
	b.Printk("%s: detected capacity change", path.Base(deviceName(key)))
	b.publishDisks()
}

// disksChanged publishes disks that were plugged in or out while the system runs. A volume that waits for a disk is
// provisioned. What happens to a volume whose disk is gone is not modelled: its status stays.
func (b *boot) disksChanged(former, disks map[string]*vm.Disk) {
	more := false
	for _, key := range diskKeys(former) {
		if disks[key] != former[key] {
			device := path.Base(deviceName(key))
			b.Printk("sd 2:0:0:0: [%s] Synchronizing SCSI cache", device)
			b.res.Remove(block.NewDisk(block.NamespaceName, device).Metadata())
			for i := range 16 { // the disk itself and its partitions
				name := device
				if i > 0 {
					name += strconv.Itoa(i)
				}
				b.res.Remove(block.NewDiscoveredVolume(block.NamespaceName, name).Metadata())
			}
		}
	}
	for _, key := range diskKeys(disks) {
		if disks[key] != former[key] {
			more = true
			b.Printk("sd 2:0:0:0: [%s] Attached SCSI disk", path.Base(deviceName(key)))
		}
	}
	b.publishDisks()
	b.site.mu.Lock()
	cfg := b.config
	b.site.mu.Unlock()
	if more && cfg != nil {
		b.provisionVolumes(cfg)
	}
}
