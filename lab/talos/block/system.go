package block

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/imager/quirks"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// System is what a disk with Talos holds of its system volumes. The lock of Node guards it. The zero value is before the first boot.
type System struct {
	encryption map[string]encryption // of STATE and EPHEMERAL, once they are made, by their labels
	ephemeral  uint64                // size of the partition EPHEMERAL; 0 before it is made
}

// Talos is the content of a disk with Talos.
type Talos interface{ SystemVolumes() *System }

// WipeEphemeral removes EPHEMERAL. The next boot makes it.
func (s *System) WipeEphemeral() {
	delete(s.encryption, constants.EphemeralPartitionLabel)
	s.ephemeral = 0
}

// Open opens the volumes that the machine needs to boot; at its first boot, it makes them. It returns why one cannot be
// opened.
func (b *Devices) Open(cfg config.Provider) error {
	b.node.Lock.Lock()
	defer b.node.Lock.Unlock()
	if b.node.Volumes.encryption == nil {
		b.node.Volumes.encryption = map[string]encryption{}
	}
	for _, name := range []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel} {
		var declared configconfig.EncryptionConfig
		if v, some := cfg.Volumes().ByName(name); some {
			declared = v.Encryption()
		}
		err := b.encryptionError(declared)
		made, exists := b.node.Volumes.encryption[name]
		if exists {
			var wrong error
			made, wrong = b.open(made, declared)
			err = errors.Join(err, wrong)
		}
		if err != nil {
			return fmt.Errorf("volume %s: %w", name, err)
		}
		if !exists {
			made = b.encrypted(declared)
		}
		b.node.Volumes.encryption[name] = made
	}
	b.growEphemeral(cfg)
	b.opened = cfg
	return nil
}

// growEphemeral makes the partition EPHEMERAL at the first boot, and lets it grow at later boots. The caller holds the lock.
func (b *Devices) growEphemeral(cfg config.Provider) {
	declared, _ := cfg.Volumes().ByName(constants.EphemeralPartitionLabel)
	size := uint64(0)
	for key, d := range b.node.Disks.Now() {
		if d == b.node.System {
			size = b.node.Disks.Size(key, d)
		}
	}
	taken := uint64(partitionTable)
	for _, p := range systemPartitions(b.node.Volumes.ephemeral, b.node.UEFI) {
		taken += p.size
	}
	free := size - min(size, taken)
	if b.node.Volumes.ephemeral > 0 {
		b.node.Volumes.ephemeral = grow(b.node.Volumes.ephemeral, free, declared.Provisioning(), true)
		return
	}
	b.node.Volumes.ephemeral = min(free, cmp.Or(declared.Provisioning().MaxSize().ValueOrZero(), free))
}

// publishSystemVolumes publishes the partitions that the installer creates, and the mount of EPHEMERAL. Talos mounts STATE
// only while it reads or writes there, and META never.
func (b *Devices) publishSystemVolumes(cfg config.Provider) {
	device := ""
	for key, d := range b.node.Disks.Now() {
		if d == b.node.System {
			device = DeviceName(key)
		}
	}
	b.node.Lock.Lock()
	partitions, made := systemPartitions(b.node.Volumes.ephemeral, b.node.UEFI), maps.Clone(b.node.Volumes.encryption)
	b.node.Lock.Unlock()
	for i, v := range partitions {
		mount, published := systemMounts[v.label]
		if !published {
			continue
		}
		status := block.NewVolumeStatus(block.NamespaceName, v.label)
		status.Metadata().Labels().Set(block.SystemVolumeLabel, "")
		spec := status.TypedSpec()
		spec.Phase, spec.Type = block.VolumePhaseReady, block.VolumeTypePartition
		spec.PartitionIndex = i + 1
		spec.ParentLocation, spec.Location = device, device+strconv.Itoa(i+1)
		spec.MountLocation, spec.Filesystem, spec.MountSpec = spec.Location, v.filesystem, mount
		made[v.label].publish(spec, v.label)
		spec.SetSize(v.size)
		if v.label == constants.EphemeralPartitionLabel {
			spec.MountSpec.ProjectQuotaSupport = cfg.Machine().Features().DiskQuotaSupportEnabled()
			b.publishMount(status, "sequencer", "", constants.EphemeralMountPoint)
		}
		b.node.Resources.Put(status)
	}
}

// systemMounts are the system volumes that are partitions, and where Talos mounts them. The directories on EPHEMERAL, which are volumes in
// Talos, too, are not modelled.
var systemMounts = map[string]block.MountSpec{
	constants.MetaPartitionLabel:  {},
	constants.StatePartitionLabel: {TargetPath: constants.StateMountPoint, SelinuxLabel: constants.StateSelinuxLabel, FileMode: 0o700},
	constants.EphemeralPartitionLabel: {
		TargetPath: constants.EphemeralMountPoint, SelinuxLabel: constants.EphemeralSelinuxLabel, FileMode: 0o755,
	},
}

// systemPartitions are the partitions of the system disk as Talos's installer makes them: with UEFI, one to boot from, otherwise GRUB's.
// The last one is EPHEMERAL.
func systemPartitions(ephemeral uint64, uefi bool) []partition {
	sizes := quirks.New("").PartitionSizes()
	out := []partition{{label: constants.EFIPartitionLabel, size: sizes.UKIEFISize(), filesystem: block.FilesystemTypeVFAT}}
	if !uefi {
		out = []partition{
			{label: constants.EFIPartitionLabel, size: sizes.GrubEFISize(), filesystem: block.FilesystemTypeVFAT},
			{label: constants.BIOSGrubPartitionLabel, size: sizes.GrubBIOSSize()},
			{label: constants.BootPartitionLabel, size: sizes.GrubBootSize(), filesystem: block.FilesystemTypeXFS},
		}
	}
	out = append(out, partition{label: constants.MetaPartitionLabel, size: sizes.METASize()},
		partition{label: constants.StatePartitionLabel, size: sizes.StateSize(), filesystem: block.FilesystemTypeXFS})
	return append(out, partition{label: constants.EphemeralPartitionLabel, size: ephemeral, filesystem: block.FilesystemTypeXFS})
}

// partitionTable is what the partition table and the alignment of partitions take of a disk.
const partitionTable = 2 << 20

// Space is the space of the file system on EPHEMERAL, in bytes, which statfs tells the kubelet: the partition
// without XFS's log and without the header of an encrypted volume.
func (b *Devices) Space(cfg config.Provider) uint64 {
	b.node.Lock.Lock()
	size := b.node.Volumes.ephemeral
	b.node.Lock.Unlock()
	if declared, ok := cfg.Volumes().ByName(constants.EphemeralPartitionLabel); ok && declared.Encryption() != nil {
		const luksHeader = 16 << 20
		size -= min(size, luksHeader)
	}
	const minLog, maxLog = 64 << 20, 2 << 30
	return size - min(size, max(minLog, min(size/2048, maxLog)))
}

// publishDiscovered publishes every disk and its partitions, which `talosctl get discoveredvolumes` prints.
func (b *Devices) publishDiscovered() {
	b.node.Lock.Lock()
	drives := b.node.Disks.Now()
	disks, sizes := map[string][]partition{}, map[string]uint64{}
	for _, key := range diskKeys(drives) {
		d := drives[key]
		sizes[key] = b.node.Disks.Size(key, d)
		switch content := d.Content.(type) {
		case Talos:
			disks[key] = systemPartitions(content.SystemVolumes().ephemeral, b.node.UEFI)
		case *dataDisk:
			disks[key] = slices.Clone(content.partitions)
		default:
			disks[key] = nil
		}
	}
	b.node.Lock.Unlock()
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		device := DeviceName(key)
		whole := block.NewDiscoveredVolume(block.NamespaceName, path.Base(device))
		spec := whole.TypedSpec()
		spec.Type, spec.DevPath, spec.SectorSize, spec.IOSize = "disk", device, 512, 512
		spec.SetSize(sizes[key])
		if len(disks[key]) > 0 {
			spec.Name = "gpt"
		}
		b.node.Resources.Put(whole)
		offset := uint64(partitionTable / 2) // the other half is at the end of the disk
		for i, p := range disks[key] {
			part := block.NewDiscoveredVolume(block.NamespaceName, path.Base(device)+strconv.Itoa(i+1))
			spec := part.TypedSpec()
			spec.Type, spec.DevPath, spec.Parent, spec.ParentDevPath = "partition", device+strconv.Itoa(i+1), path.Base(device), device
			spec.PartitionLabel, spec.PartitionIndex, spec.SectorSize, spec.IOSize = p.label, uint(i+1), 512, 512
			if p.encryption.provider != block.EncryptionProviderNone {
				spec.Name = "luks"
			} else if p.filesystem != block.FilesystemTypeNone {
				spec.Name = p.filesystem.String()
			}
			spec.SetSize(p.size)
			spec.Offset = offset
			offset += p.size
			b.node.Resources.Put(part)
		}
	}
}
