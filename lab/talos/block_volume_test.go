package talos_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	blockcfg "github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/vm"
)

// userVolume is a user volume on the disk that an expression selects.
func userVolume(name, match string) *blockcfg.UserVolumeConfigV1Alpha1 {
	v := blockcfg.NewUserVolumeConfigV1Alpha1()
	v.MetaName = name
	v.ProvisioningSpec = blockcfg.ProvisioningSpec{
		DiskSelectorSpec:    blockcfg.DiskSelector{Match: cel.MustExpression(cel.ParseBooleanExpression(match, celenv.DiskLocator()))},
		ProvisioningGrow:    pointer.To(true),
		ProvisioningMinSize: blockcfg.MustByteSize("1GiB"),
	}
	return v
}

// second is an expression that selects the second disk, as the stacks do.
const second = `"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1" in disk.symlinks`

func volume(w *world, host byte, id string) *block.VolumeStatusSpec {
	w.t.Helper()
	return resource[*block.VolumeStatus](w, host, block.NamespaceName, id).TypedSpec()
}

func TestVolume_AUserVolumeTakesTheDiskThatItsSelectorMatches(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11) // signs the worker's certificate
	hw := w.hardware(21)
	hw.Disks["scsi1"] = &vm.Disk{Volume: "fast:disk", Size: 50 << 30}
	hw.Disks["scsi2"] = &vm.Disk{Volume: "fast:raw", Size: 8 << 30}
	g := w.boots(hw, w.with(w.config(configmachine.TypeWorker, 21), userVolume("data", second)))

	check := func() {
		v := volume(w, 21, "u-data")
		require.Equal(t, block.VolumePhaseReady, v.Phase, v.ErrorMessage)
		require.Equal(t, "/dev/sdb1", v.Location)
		require.Equal(t, "/dev/sdb", v.ParentLocation)
		require.Equal(t, block.FilesystemTypeXFS, v.Filesystem)
		require.Greater(t, v.Size, uint64(49<<30))
		require.Equal(t, "/var/mnt/data", resource[*block.VolumeMountStatus](w, 21, block.NamespaceName, "u-data").TypedSpec().Target)
		mount := resource[*block.MountStatus](w, 21, block.NamespaceName, "u-data").TypedSpec()
		require.Equal(t, []any{"/dev/sdb1", "/var/mnt/data", "/var/mnt"}, []any{mount.Source, mount.Target, mount.Spec.ParentMountID})
	}
	check()
	require.Equal(t, uint64(8<<30), resource[*block.Disk](w, 21, block.NamespaceName, "sdc").TypedSpec().Size)
	require.Equal(t, "u-data", resource[*block.DiscoveredVolume](w, 21, block.NamespaceName, "sdb1").TypedSpec().PartitionLabel)
	require.Empty(t, resource[*block.DiscoveredVolume](w, 21, block.NamespaceName, "sdc").TypedSpec().Name, "the raw disk is left alone")
	require.Equal(t, "sda", resource[*block.SystemDisk](w, 21, block.NamespaceName, block.SystemDiskID).TypedSpec().DiskID)

	g.PowerOff()
	w.site.PowerOn(hw)
	w.eventually("it is back", func() bool { return w.service(21, "apid").Healthy })
	check()
}

func TestVolume_EphemeralIsMountedAndEveryFormOfMountStatusShowsIt(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.eventually("its API is up", func() bool { return w.service(11, "apid").Healthy })
	mount := resource[*block.MountStatus](w, 11, block.NamespaceName, constants.EphemeralPartitionLabel).TypedSpec()
	require.Equal(t, []string{"sequencer"}, mount.Spec.Requesters)
	require.Equal(t, []any{"/dev/sda4", "/var", block.FilesystemTypeXFS}, []any{mount.Source, mount.Target, mount.Filesystem})
	requested := resource[*block.VolumeMountStatus](w, 11, block.NamespaceName, constants.EphemeralPartitionLabel).TypedSpec()
	require.Equal(t, "sequencer", requested.Requester)
	older := resource[*runtime.MountStatus](w, 11, runtime.NamespaceName, constants.EphemeralPartitionLabel).TypedSpec()
	require.Equal(t, []any{"/dev/sda4", "/var", "xfs", false}, []any{older.Source, older.Target, older.FilesystemType, older.Encrypted})
}

func TestVolume_ThePartitionsOfTheSystemDiskAreThoseOfTheFirmware(t *testing.T) {
	for name, tc := range map[string]struct {
		uefi bool
		want map[string]string
	}{
		"UEFI": {true, map[string]string{"sda1": "EFI", "sda2": "META", "sda3": "STATE", "sda4": "EPHEMERAL"}},
		"BIOS": {false, map[string]string{"sda1": "EFI", "sda2": "BIOS", "sda3": "BOOT", "sda4": "META", "sda5": "STATE", "sda6": "EPHEMERAL"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hw := w.hardware(11)
			hw.UEFI = tc.uefi
			w.boots(hw, w.config(configmachine.TypeControlPlane, 11))
			found, taken := map[string]string{}, uint64(0)
			for _, d := range listed[*block.DiscoveredVolume](w, 11) {
				if spec := d.TypedSpec(); spec.Type == "partition" {
					found[d.Metadata().ID()] = spec.PartitionLabel
					taken += spec.Size
				}
			}
			require.Equal(t, tc.want, found)
			require.Equal(t, uint64(20<<30-2<<20), taken)
			for device, label := range found {
				if label != "META" && label != "STATE" && label != "EPHEMERAL" {
					continue
				}
				volume := volume(w, 11, label)
				require.Equal(t, []any{"/dev/" + device, device[3:]}, []any{volume.Location, fmt.Sprint(volume.PartitionIndex)})
			}
		})
	}
}

func TestVolume_WithoutAMatchingDiskAUserVolumeFailsAndTheNodeRunsOn(t *testing.T) {
	w := newWorld(t)
	data := w.with(w.config(configmachine.TypeControlPlane, 11), userVolume("data", second))
	w.boots(w.hardware(11), data)
	v := volume(w, 11, "u-data")
	require.Equal(t, block.VolumePhaseFailed, v.Phase)
	require.Equal(t, "no disks matched selector for volume", v.ErrorMessage)
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)

	full := w.with(w.config(configmachine.TypeControlPlane, 11), userVolume("data", "system_disk"))
	_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: full,
		Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
	require.NoError(t, err)
	require.Contains(t, volume(w, 11, "u-data").ErrorMessage, "(1 matched selector): 1 have not enough space")
}

func TestVolume_AVolumeIsMadeOnARunningNode(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.Disks["scsi1"] = &vm.Disk{Volume: "fast:disk", Size: 50 << 30}
	plain := w.config(configmachine.TypeControlPlane, 11)
	w.boots(hw, plain)
	apply := func(docs ...configconfig.Document) {
		reply, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: w.with(plain, docs...),
			Mode: machine.ApplyConfigurationRequest_AUTO})
		require.NoError(t, err)
		require.Equal(t, "Applied configuration without a reboot", reply.Messages[0].ModeDetails)
	}
	apply(userVolume("data", second))
	require.Equal(t, block.VolumePhaseReady, volume(w, 11, "u-data").Phase)
	apply()
	require.Equal(t, "u-data", resource[*block.DiscoveredVolume](w, 11, block.NamespaceName, "sdb1").TypedSpec().PartitionLabel,
		"the partition stays")
}

// encrypted returns the documents that encrypt Talos's own volumes.
func encrypted(keys ...blockcfg.EncryptionKey) []configconfig.Document {
	var out []configconfig.Document
	for _, name := range []string{"STATE", "EPHEMERAL"} {
		v := blockcfg.NewVolumeConfigV1Alpha1()
		v.MetaName = name
		v.EncryptionSpec = blockcfg.EncryptionSpec{EncryptionProvider: block.EncryptionProviderLUKS2, EncryptionKeys: keys}
		out = append(out, v)
	}
	return out
}

func TestVolume_SystemVolumesAreEncryptedAsDeclared(t *testing.T) {
	w := newWorld(t)
	w.boots(w.hardware(11), w.with(w.config(configmachine.TypeControlPlane, 11),
		encrypted(blockcfg.EncryptionKey{KeyNodeID: &blockcfg.EncryptionKeyNodeID{}})...))
	for _, name := range []string{"STATE", "EPHEMERAL"} {
		require.Equal(t, block.EncryptionProviderLUKS2, volume(w, 11, name).EncryptionProvider)
		require.Equal(t, "/dev/mapper/luks2-"+name, volume(w, 11, name).MountLocation)
	}
	require.Equal(t, block.EncryptionProviderNone, volume(w, 11, "META").EncryptionProvider)
}

func TestVolume_KeysInATPMNeedOneAndSecureBoot(t *testing.T) {
	key := blockcfg.EncryptionKey{KeyTPM: &blockcfg.EncryptionKeyTPM{TPMCheckSecurebootStatusOnEnroll: pointer.To(true)}}
	for name, tc := range map[string]struct {
		tpm, secure bool
		reason      string
	}{
		"none":          {false, true, "error opening TPM device"},
		"no SecureBoot": {true, false, "SecureBoot is disabled"},
		"both":          {true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hw := w.hardware(11)
			hw.ISO.SecureBoot = tc.secure
			if tc.tpm {
				hw.TPM = &vm.Disk{Volume: "local-lvm:tpm"}
			}
			if tc.secure {
				w.input.Options.InstallImage = "factory.talos.dev/nocloud-installer-secureboot/abc:v1.12.7"
			}
			g := w.site.PowerOn(hw)
			w.stage(11, talos.StageMaintenance)
			w.apply(11, w.with(w.config(configmachine.TypeControlPlane, 11), encrypted(key)...))
			if tc.reason == "" {
				w.eventually("its API is up", func() bool { return w.service(11, "apid").Healthy })
				require.Equal(t, "Running", w.service(11, "ext-qemu-guest-agent").State)
				opened, another := hw.TPM, hw
				another.TPM = &vm.Disk{Volume: "ceph:tpm"}
				g.PowerOff()
				g = w.site.PowerOn(another)
				w.eventually("a new TPM has not the keys", func() bool { return strings.Contains(w.status(11).Reason, "srk name does not match") })
				g.PowerOff()
				hw.TPM = opened
				w.site.PowerOn(hw)
				w.eventually("the former one has", func() bool { return w.service(11, "apid").Healthy })
				return
			}
			w.eventually("it reboots for ever", func() bool { return strings.Contains(w.status(11).Reason, tc.reason) })
		})
	}
}

func TestVolume_GrowsWithItsDiskOnlyWhenTheNodeBoots(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.Disks["scsi1"] = &vm.Disk{Volume: "fast:disk", Size: 50 << 30}
	config := w.with(w.config(configmachine.TypeControlPlane, 11), userVolume("data", second))
	g := w.boots(hw, config)
	sizes := func() []uint64 { return []uint64{volume(w, 11, "EPHEMERAL").Size, volume(w, 11, "u-data").Size} }
	before := sizes()
	g.Grown("scsi0", 30<<30)
	g.Grown("scsi1", 60<<30)
	for device, size := range map[string]uint64{"sda": 30 << 30, "sdb": 60 << 30} {
		w.eventually("the kernel sees the size", func() bool {
			return resource[*block.Disk](w, 11, block.NamespaceName, device).TypedSpec().Size == size &&
				resource[*block.DiscoveredVolume](w, 11, block.NamespaceName, device).TypedSpec().Size == size
		})
	}
	_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Data: w.with(config, userVolume("more", "false")), Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})
	require.NoError(t, err)
	require.Equal(t, before, sizes(), "what is ready does not grow")

	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("it reboots", func() bool { return !w.service(11, "apid").Healthy })
	w.eventually("it is back", func() bool { return w.service(11, "apid").Healthy })
	require.Equal(t, []uint64{before[0] + 10<<30, before[1] + 10<<30}, sizes())
	require.Equal(t, before[0]+10<<30, resource[*block.DiscoveredVolume](w, 11, block.NamespaceName, "sda4").TypedSpec().Size)
}

func TestVolume_AWaitingVolumeTakesADiskThatIsPluggedIn(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	g := w.boots(hw, w.with(w.config(configmachine.TypeControlPlane, 11), userVolume("data", second)))
	require.Equal(t, block.VolumePhaseFailed, volume(w, 11, "u-data").Phase)
	more := maps.Clone(hw.Disks)
	more["scsi1"] = &vm.Disk{Volume: "fast:disk", Size: 50 << 30}
	g.Plug(more)
	w.eventually("the volume is there", func() bool { return volume(w, 11, "u-data").Phase == block.VolumePhaseReady })
	require.Equal(t, uint64(50<<30), resource[*block.Disk](w, 11, block.NamespaceName, "sdb").TypedSpec().Size)

	g.Plug(hw.Disks)
	w.eventually("the disk is gone", func() bool {
		_, err := safe.StateGet[*block.Disk](w.ctx, w.admin(11).COSI, block.NewDisk(block.NamespaceName, "sdb").Metadata())
		return state.IsNotFoundError(err)
	})
	_, err := safe.StateGet[*block.DiscoveredVolume](w.ctx, w.admin(11).COSI, block.NewDiscoveredVolume(block.NamespaceName, "sdb1").Metadata())
	require.True(t, state.IsNotFoundError(err), "%v", err)
}
