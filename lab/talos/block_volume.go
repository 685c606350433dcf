package talos

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/imager/quirks"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/slipway-platform/slipway/lab/vm"
)

// minUserVolume is the size of the smallest user volume that Talos creates.
const minUserVolume = 100 << 20

// dataDisk is the content of a disk without Talos: the partitions of user and raw volumes. It survives power cycles.
// The site's mutex guards its fields.
type dataDisk struct{ partitions []partition }

// partition is a volume on a data disk.
type partition struct {
	label      string // the volume's id, e.g. u-data
	size       uint64
	filesystem block.FilesystemType
	encryption encryption
}

// wantedVolume is a user or raw volume that the configuration asks for.
type wantedVolume struct {
	id         string
	provision  configconfig.VolumeProvisioningConfig
	encryption configconfig.EncryptionConfig
	filesystem block.FilesystemType
	mount      string // where it is mounted; empty for a raw volume
}

// wantedVolumes returns the user and raw volumes that a configuration asks for.
func wantedVolumes(cfg config.Provider) []wantedVolume {
	var out []wantedVolume
	for _, v := range cfg.UserVolumeConfigs() {
		if v.Type().ValueOr(block.VolumeTypePartition) != block.VolumeTypePartition {
			continue // whole disks and directories are not modelled
		}
		out = append(out, wantedVolume{
			id: constants.UserVolumePrefix + v.Name(), provision: v.Provisioning(), encryption: v.Encryption(),
			filesystem: v.Filesystem().Type(), mount: path.Join(constants.UserVolumeMountPoint, v.Name()),
		})
	}
	for _, v := range cfg.RawVolumeConfigs() {
		out = append(out, wantedVolume{id: constants.RawVolumePrefix + v.Name(), provision: v.Provisioning(), encryption: v.Encryption()})
	}
	return out
}

// provisionVolumes finds or creates the volumes of a configuration, and publishes the status of each.
func (b *boot) provisionVolumes(cfg config.Provider) {
	b.publishSystemVolumes(b.opened) // a volume that is open stays as it is until the next boot
	wanted := wantedVolumes(cfg)
	for _, v := range wanted {
		device, p, index, err := b.provisionVolume(v)
		status := block.NewVolumeStatus(block.NamespaceName, v.id)
		spec := status.TypedSpec()
		spec.Type, spec.Phase = block.VolumeTypePartition, block.VolumePhaseReady
		if err != nil {
			spec.Phase, spec.PreFailPhase, spec.ErrorMessage = block.VolumePhaseFailed, block.VolumePhaseWaiting, err.Error()
			if b.res.Changes(status) {
				b.Printk("[talos] volume status {\"volume\": %q, \"phase\": \"waiting -> failed\", \"error\": %q}", v.id, err)
			}
			b.res.Put(status)
			continue
		}
		spec.ParentLocation, spec.PartitionIndex = device, index
		spec.Location = device + strconv.Itoa(index)
		spec.MountLocation, spec.Filesystem = spec.Location, p.filesystem
		p.encryption.publish(spec, v.id)
		spec.SetSize(p.size)
		b.res.Put(status)
		if v.mount != "" {
			b.publishMount(status, "block.VolumeConfigController", constants.UserVolumeMountPoint, v.mount)
		}
	}
	b.forgetVolumes(wanted)
	b.publishDiscovered()
}

// forgetVolumes removes the statuses of volumes that the configuration no longer asks for. Their partitions stay.
func (b *boot) forgetVolumes(wanted []wantedVolume) {
	b.site.mu.Lock()
	former := b.volumes
	b.volumes = nil
	for _, v := range wanted {
		b.volumes = append(b.volumes, v.id)
	}
	gone := slices.DeleteFunc(slices.Clone(former), func(id string) bool { return slices.Contains(b.volumes, id) })
	b.site.mu.Unlock()
	for _, id := range gone {
		b.res.Remove(block.NewVolumeStatus(block.NamespaceName, id).Metadata())
		b.res.Remove(block.NewVolumeMountStatus(block.NamespaceName, id).Metadata())
		b.res.Remove(block.NewMountStatus(block.NamespaceName, id).Metadata())
		b.res.Remove(runtime.NewMountStatus(runtime.NamespaceName, id).Metadata())
	}
}

// publishMount publishes that a volume is mounted: the mount, its only requester, and the older form that `talosctl get
// mounts` prints. parent is the mount below which it is.
func (b *boot) publishMount(volume *block.VolumeStatus, requester, parent, target string) {
	id, of := volume.Metadata().ID(), volume.TypedSpec()
	mount := block.NewMountStatus(block.NamespaceName, id)
	mount.TypedSpec().Spec = block.MountRequestSpec{
		VolumeID: id, ParentMountID: parent, Requesters: []string{requester}, RequesterIDs: []string{id},
	}
	mount.TypedSpec().Source, mount.TypedSpec().Target = of.MountLocation, target
	mount.TypedSpec().Filesystem, mount.TypedSpec().EncryptionProvider = of.Filesystem, of.EncryptionProvider
	mount.TypedSpec().ProjectQuotaSupport = of.MountSpec.ProjectQuotaSupport
	b.res.Put(mount)
	requested := block.NewVolumeMountStatus(block.NamespaceName, id)
	requested.TypedSpec().VolumeID, requested.TypedSpec().Requester, requested.TypedSpec().Target = id, requester, target
	b.res.Put(requested)
	older := runtime.NewMountStatus(runtime.NamespaceName, id)
	older.TypedSpec().Source, older.TypedSpec().Target, older.TypedSpec().FilesystemType = of.MountLocation, target, of.Filesystem.String()
	older.TypedSpec().Encrypted = of.EncryptionProvider != block.EncryptionProviderNone
	b.res.Put(older)
}

// provisionVolume finds a volume by its label, or creates it on the first disk that matches and has enough space.
func (b *boot) provisionVolume(v wantedVolume) (device string, p partition, index int, err error) {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	disks := b.m.disks()
	keys := diskKeys(disks)
	for _, key := range keys {
		if data, ok := disks[key].Content.(*dataDisk); ok {
			if i := slices.IndexFunc(data.partitions, func(p partition) bool { return p.label == v.id }); i >= 0 {
				if err := b.openPartition(&data.partitions[i]); err != nil {
					return deviceName(key), data.partitions[i], i + 1, err
				}
				if !b.ready[v.id] && i == len(data.partitions)-1 {
					data.partitions[i].size = grow(data.partitions[i].size, b.freeSpace(key, disks[key]), v.provision, false)
				}
				b.isReady(v.id)
				return deviceName(key), data.partitions[i], i + 1, nil
			}
		}
	}
	if err := b.encryptionError(v.encryption); err != nil {
		return "", p, 0, err
	}
	selector, some := v.provision.DiskSelector().Get()
	if !some {
		return "", p, 0, errors.New("no disks matched selector for volume")
	}
	matched := 0
	for _, key := range keys {
		disk := disks[key]
		matches, err := selector.EvalBool(celenv.DiskLocator(), map[string]any{
			"disk": diskProto(key, disk, b.m.diskSize(key, disk)), "system_disk": disk == b.disk,
		})
		if err != nil {
			return "", p, 0, fmt.Errorf("error evaluating disk locator: %w", err)
		}
		if !matches {
			continue
		}
		matched++
		free := b.freeSpace(key, disk)
		if free < cmp.Or(v.provision.MinSize().ValueOrZero(), minUserVolume) {
			continue
		}
		size := free
		if limit := v.provision.MaxSize().ValueOrZero(); limit > 0 {
			size = min(size, limit)
		}
		data, ok := disk.Content.(*dataDisk)
		if !ok {
			data = &dataDisk{}
			disk.Content = data
		}
		p = partition{label: v.id, size: size, filesystem: v.filesystem, encryption: b.encrypted(v.encryption)}
		data.partitions = append(data.partitions, p)
		b.isReady(v.id)
		return deviceName(key), p, len(data.partitions), nil
	}
	if matched == 0 {
		return "", p, 0, errors.New("no disks matched selector for volume")
	}
	return "", p, 0, fmt.Errorf("no disks matched for volume (%d matched selector): %d have not enough space, 0 have wrong format, 0 have other issues", matched, matched)
}

// isReady records that a volume is ready. The caller holds the site's mutex.
func (b *boot) isReady(id string) {
	if b.ready == nil {
		b.ready = map[string]bool{}
	}
	b.ready[id] = true
}

// grow returns the size of a partition at the end of its disk after a boot: with the free space, if the volume may grow, up to its largest
// size. As in Talos, less than 1 MiB is not worth it.
func grow(size, free uint64, declared configconfig.VolumeProvisioningConfig, byDefault bool) uint64 {
	if limit := declared.MaxSize().ValueOrZero(); limit > 0 {
		free = min(free, limit-min(limit, size))
	}
	if !declared.Grow().ValueOr(byDefault) || free <= 1<<20 {
		return size
	}
	return size + free
}

// freeSpace is the space that a new partition can have on a disk. On the disk that Talos is on, EPHEMERAL takes all of
// it. The caller holds the site's mutex.
func (b *boot) freeSpace(key string, d *vm.Disk) uint64 {
	if installedOn(d) != nil {
		return 0
	}
	taken := uint64(partitionTable)
	if data, ok := d.Content.(*dataDisk); ok {
		for _, p := range data.partitions {
			taken += p.size
		}
	}
	size := b.m.diskSize(key, d)
	return size - min(size, taken)
}

// openSystemVolumes opens the volumes that the machine needs to boot; at its first boot, it makes them. It returns why one cannot be
// opened.
func (b *boot) openSystemVolumes(cfg config.Provider) error {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.inst.encryption == nil {
		b.inst.encryption = map[string]encryption{}
	}
	for _, name := range []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel} {
		var declared configconfig.EncryptionConfig
		if v, some := cfg.Volumes().ByName(name); some {
			declared = v.Encryption()
		}
		err := b.encryptionError(declared)
		made, exists := b.inst.encryption[name]
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
		b.inst.encryption[name] = made
	}
	b.growEphemeral(cfg)
	b.opened = cfg
	return nil
}

// growEphemeral makes the partition EPHEMERAL at the first boot, and lets it grow at later boots. The caller holds the site's mutex.
func (b *boot) growEphemeral(cfg config.Provider) {
	declared, _ := cfg.Volumes().ByName(constants.EphemeralPartitionLabel)
	size := uint64(0)
	for key, d := range b.m.disks() {
		if d == b.disk {
			size = b.m.diskSize(key, d)
		}
	}
	taken := uint64(partitionTable)
	for _, p := range systemPartitions(b.inst.ephemeral, b.m.hw.UEFI) {
		taken += p.size
	}
	free := size - min(size, taken)
	if b.inst.ephemeral > 0 {
		b.inst.ephemeral = grow(b.inst.ephemeral, free, declared.Provisioning(), true)
		return
	}
	b.inst.ephemeral = min(free, cmp.Or(declared.Provisioning().MaxSize().ValueOrZero(), free))
}

// publishSystemVolumes publishes the partitions that the installer creates, and the mount of EPHEMERAL. Talos mounts STATE
// only while it reads or writes there, and META never.
func (b *boot) publishSystemVolumes(cfg config.Provider) {
	device := ""
	for key, d := range b.m.disks() {
		if d == b.disk {
			device = deviceName(key)
		}
	}
	b.site.mu.Lock()
	partitions, made := systemPartitions(b.inst.ephemeral, b.m.hw.UEFI), maps.Clone(b.inst.encryption)
	b.site.mu.Unlock()
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
		b.res.Put(status)
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

// systemPartitions are the partitions of the system disk as Talos's installer makes them: with UEFI, one to boot from, otherwise GRUB's. The
// last one is EPHEMERAL.
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

// ephemeralSpace is the space of the file system on EPHEMERAL, in bytes, which statfs tells the kubelet: the partition
// without XFS's log and without the header of an encrypted volume.
func (b *boot) ephemeralSpace() uint64 {
	b.site.mu.Lock()
	size := b.inst.ephemeral
	b.site.mu.Unlock()
	if declared, ok := b.config.Volumes().ByName(constants.EphemeralPartitionLabel); ok && declared.Encryption() != nil {
		const luksHeader = 16 << 20
		size -= min(size, luksHeader)
	}
	const minLog, maxLog = 64 << 20, 2 << 30
	return size - min(size, max(minLog, min(size/2048, maxLog)))
}

// publishDiscovered publishes every disk and its partitions, which `talosctl get discoveredvolumes` prints.
func (b *boot) publishDiscovered() {
	b.site.mu.Lock()
	drives := b.m.disks()
	disks, sizes := map[string][]partition{}, map[string]uint64{}
	for _, key := range diskKeys(drives) {
		d := drives[key]
		sizes[key] = b.m.diskSize(key, d)
		switch content := d.Content.(type) {
		case *installation:
			disks[key] = systemPartitions(content.ephemeral, b.m.hw.UEFI)
		case *dataDisk:
			disks[key] = slices.Clone(content.partitions)
		default:
			disks[key] = nil
		}
	}
	b.site.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		device := deviceName(key)
		whole := block.NewDiscoveredVolume(block.NamespaceName, path.Base(device))
		spec := whole.TypedSpec()
		spec.Type, spec.DevPath, spec.SectorSize, spec.IOSize = "disk", device, 512, 512
		spec.SetSize(sizes[key])
		if len(disks[key]) > 0 {
			spec.Name = "gpt"
		}
		b.res.Put(whole)
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
			b.res.Put(part)
		}
	}
}
