package block

import (
	"context"
	"path"
	"strconv"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/talos/cosi"
	"github.com/slipway-platform/slipway/lab/talos/journal"
	"github.com/slipway-platform/slipway/lab/vm"
)

// Node is what the block devices need of the node that they belong to.
type Node struct {
	Disks      *Disks
	TPM        *vm.Disk // nil without one
	UEFI       bool
	System     *vm.Disk    // that Talos runs from; nil in maintenance mode
	Volumes    *System     // on that disk; nil in maintenance mode
	SecureBoot func() bool // Talos on that disk boots with SecureBoot; called with the lock held
	Resources  *cosi.Resources
	Journal    *journal.Journal
	Lock       sync.Locker // guards the contents of disks
}

// Devices are the block devices and volumes of one boot. They serve Talos's storage API, in maintenance mode and on a configured node.
type Devices struct {
	storage.UnimplementedStorageServiceServer

	node Node

	// guarded by node.Lock
	declared config.Provider // that asks for volumes; nil in maintenance mode
	opened   config.Provider // that the volumes were opened with
	volumes  []string        // ids of the user and raw volumes that are asked for
	ready    map[string]bool // those that are ready: they do not change until the next boot
}

// New returns the devices of a boot.
func New(node Node) *Devices { return &Devices{node: node, ready: map[string]bool{}} }

// Publish publishes the disks, and the one that Talos runs from as system disk.
func (b *Devices) Publish() {
	disks := b.node.Disks.Now()
	for _, key := range diskKeys(disks) {
		d, device := disks[key], DeviceName(key)
		disk := block.NewDisk(block.NamespaceName, path.Base(device))
		spec := disk.TypedSpec()
		spec.DevPath, spec.Model, spec.Serial, spec.Transport, spec.SectorSize, spec.IOSize = device, diskModel, d.Serial, "virtio", 512, 512
		spec.SubSystem, spec.Symlinks = "/sys/class/block", symlinks(key, d)
		spec.SetSize(b.node.Disks.Size(key, d))
		b.node.Resources.Put(disk)
		if d == b.node.System {
			system := block.NewSystemDisk(block.NamespaceName, block.SystemDiskID)
			system.TypedSpec().DiskID, system.TypedSpec().DevPath = path.Base(device), device
			b.node.Resources.Put(system)
		}
	}
	b.publishDiscovered()
}

// Grown publishes that a disk has grown while the system runs. Volumes that are ready stay as they are until the next boot.
func (b *Devices) Grown(key string) {
	b.node.Journal.Printk("%s: detected capacity change", path.Base(DeviceName(key)))
	b.Publish()
}

// Changed publishes disks that were plugged in or out while the system runs. A volume that waits for a disk is
// provisioned. What happens to a volume whose disk is gone is not modelled: its status stays.
func (b *Devices) Changed(former, disks map[string]*vm.Disk) {
	more := false
	for _, key := range diskKeys(former) {
		if disks[key] != former[key] {
			device := path.Base(DeviceName(key))
			b.node.Journal.Printk("sd 2:0:0:0: [%s] Synchronizing SCSI cache", device)
			b.node.Resources.Remove(block.NewDisk(block.NamespaceName, device).Metadata())
			for i := range 16 { // the disk itself and its partitions
				name := device
				if i > 0 {
					name += strconv.Itoa(i)
				}
				b.node.Resources.Remove(block.NewDiscoveredVolume(block.NamespaceName, name).Metadata())
			}
		}
	}
	for _, key := range diskKeys(disks) {
		if disks[key] != former[key] {
			more = true
			b.node.Journal.Printk("sd 2:0:0:0: [%s] Attached SCSI disk", path.Base(DeviceName(key)))
		}
	}
	b.Publish()
	b.node.Lock.Lock()
	cfg := b.declared
	b.node.Lock.Unlock()
	if more && cfg != nil {
		b.Provision(cfg)
	}
}

// Disks lists the machine's disks.
func (b *Devices) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	root := &storage.Disk{DeviceName: "/dev/loop0", Size: 76 << 20, BusPath: "/virtual", Subsystem: "/sys/class/block", Readonly: true}
	out := &storage.Disks{Disks: []*storage.Disk{root}} // with Talos's own file system
	disks := b.node.Disks.Now()
	for _, key := range diskKeys(disks) {
		disk := disks[key]
		out.Disks = append(out.Disks, &storage.Disk{
			DeviceName: DeviceName(key), Model: diskModel, Serial: disk.Serial, Size: b.node.Disks.Size(key, disk), Type: storage.Disk_SSD,
			BusPath: "/pci0000:00/virtio", Subsystem: "/sys/class/block", SystemDisk: disk == b.node.System,
		})
	}
	return &storage.DisksResponse{Messages: []*storage.Disks{out}}, nil
}
