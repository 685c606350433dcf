package block

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
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

// Provision finds or creates the volumes of a configuration, and publishes the status of each.
func (b *Devices) Provision(cfg config.Provider) {
	b.node.Lock.Lock()
	b.declared = cfg
	opened := b.opened
	b.node.Lock.Unlock()
	b.publishSystemVolumes(opened) // a volume that is open stays as it is until the next boot
	wanted := wantedVolumes(cfg)
	for _, v := range wanted {
		device, p, index, err := b.provisionVolume(v)
		status := block.NewVolumeStatus(block.NamespaceName, v.id)
		spec := status.TypedSpec()
		spec.Type, spec.Phase = block.VolumeTypePartition, block.VolumePhaseReady
		if err != nil {
			spec.Phase, spec.PreFailPhase, spec.ErrorMessage = block.VolumePhaseFailed, block.VolumePhaseWaiting, err.Error()
			if b.node.Resources.Changes(status) {
				b.node.Journal.Printk("[talos] volume status {\"volume\": %q, \"phase\": \"waiting -> failed\", \"error\": %q}", v.id, err)
			}
			b.node.Resources.Put(status)
			continue
		}
		spec.ParentLocation, spec.PartitionIndex = device, index
		spec.Location = device + strconv.Itoa(index)
		spec.MountLocation, spec.Filesystem = spec.Location, p.filesystem
		p.encryption.publish(spec, v.id)
		spec.SetSize(p.size)
		b.node.Resources.Put(status)
		if v.mount != "" {
			b.publishMount(status, "block.VolumeConfigController", constants.UserVolumeMountPoint, v.mount)
		}
	}
	b.forgetVolumes(wanted)
	b.publishDiscovered()
}

// forgetVolumes removes the statuses of volumes that the configuration no longer asks for. Their partitions stay.
func (b *Devices) forgetVolumes(wanted []wantedVolume) {
	b.node.Lock.Lock()
	former := b.volumes
	b.volumes = nil
	for _, v := range wanted {
		b.volumes = append(b.volumes, v.id)
	}
	gone := slices.DeleteFunc(slices.Clone(former), func(id string) bool { return slices.Contains(b.volumes, id) })
	b.node.Lock.Unlock()
	for _, id := range gone {
		b.node.Resources.Remove(block.NewVolumeStatus(block.NamespaceName, id).Metadata())
		b.node.Resources.Remove(block.NewVolumeMountStatus(block.NamespaceName, id).Metadata())
		b.node.Resources.Remove(block.NewMountStatus(block.NamespaceName, id).Metadata())
		b.node.Resources.Remove(runtime.NewMountStatus(runtime.NamespaceName, id).Metadata())
	}
}

// publishMount publishes that a volume is mounted: the mount, its only requester, and the older form that `talosctl get
// mounts` prints. parent is the mount below which it is.
func (b *Devices) publishMount(volume *block.VolumeStatus, requester, parent, target string) {
	id, of := volume.Metadata().ID(), volume.TypedSpec()
	mount := block.NewMountStatus(block.NamespaceName, id)
	mount.TypedSpec().Spec = block.MountRequestSpec{
		VolumeID: id, ParentMountID: parent, Requesters: []string{requester}, RequesterIDs: []string{id},
	}
	mount.TypedSpec().Source, mount.TypedSpec().Target = of.MountLocation, target
	mount.TypedSpec().Filesystem, mount.TypedSpec().EncryptionProvider = of.Filesystem, of.EncryptionProvider
	mount.TypedSpec().ProjectQuotaSupport = of.MountSpec.ProjectQuotaSupport
	b.node.Resources.Put(mount)
	requested := block.NewVolumeMountStatus(block.NamespaceName, id)
	requested.TypedSpec().VolumeID, requested.TypedSpec().Requester, requested.TypedSpec().Target = id, requester, target
	b.node.Resources.Put(requested)
	older := runtime.NewMountStatus(runtime.NamespaceName, id)
	older.TypedSpec().Source, older.TypedSpec().Target, older.TypedSpec().FilesystemType = of.MountLocation, target, of.Filesystem.String()
	older.TypedSpec().Encrypted = of.EncryptionProvider != block.EncryptionProviderNone
	b.node.Resources.Put(older)
}

// provisionVolume finds a volume by its label, or creates it on the first disk that matches and has enough space.
func (b *Devices) provisionVolume(v wantedVolume) (device string, p partition, index int, err error) {
	b.node.Lock.Lock()
	defer b.node.Lock.Unlock()
	disks := b.node.Disks.Now()
	keys := diskKeys(disks)
	for _, key := range keys {
		if data, ok := disks[key].Content.(*dataDisk); ok {
			if i := slices.IndexFunc(data.partitions, func(p partition) bool { return p.label == v.id }); i >= 0 {
				if err := b.openPartition(&data.partitions[i]); err != nil {
					return DeviceName(key), data.partitions[i], i + 1, err
				}
				if !b.ready[v.id] && i == len(data.partitions)-1 {
					data.partitions[i].size = grow(data.partitions[i].size, b.freeSpace(key, disks[key]), v.provision, false)
				}
				b.ready[v.id] = true
				return DeviceName(key), data.partitions[i], i + 1, nil
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
			"disk": diskProto(key, disk, b.node.Disks.Size(key, disk)), "system_disk": disk == b.node.System,
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
		b.ready[v.id] = true
		return DeviceName(key), p, len(data.partitions), nil
	}
	if matched == 0 {
		return "", p, 0, errors.New("no disks matched selector for volume")
	}
	return "", p, 0, fmt.Errorf("no disks matched for volume (%d matched selector): %d have not enough space, 0 have wrong format, "+
		"0 have other issues", matched, matched)
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
// it. The caller holds the lock.
func (b *Devices) freeSpace(key string, d *vm.Disk) uint64 {
	if _, is := d.Content.(Talos); is {
		return 0
	}
	taken := uint64(partitionTable)
	if data, ok := d.Content.(*dataDisk); ok {
		for _, p := range data.partitions {
			taken += p.size
		}
	}
	size := b.node.Disks.Size(key, d)
	return size - min(size, taken)
}
