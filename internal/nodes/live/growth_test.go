package live

import (
	"fmt"
	"path"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// part is a partition of a disk.
type part struct {
	index        uint
	offset, size uint64
}

// ephemeral is the last partition of a system disk of 40 GiB, as Talos 1.14 has made it: 1 MiB behind it is free.
var ephemeral = part{4, 2310012928, 40638611456}

const (
	gib   = 1 << 30
	whole = 40 * gib
)

func TestCluster_KnowsWhichVolumesTheNextBootMakesBigger(t *testing.T) {
	const machineConfig, more = "machine: {type: controlplane}", "\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n"
	for name, one := range map[string]struct {
		disk          uint64
		behind        []part // EPHEMERAL
		configuration string // beside the machine's
		grown         uint64 // by which Talos has made EPHEMERAL bigger, and not discovered it yet
		waits         bool   // EPHEMERAL is not ready
		want          []string
	}{
		"nothing has grown":         {disk: whole},
		"the disk has grown":        {disk: whole + gib, want: []string{"EPHEMERAL"}},
		"Talos has made it bigger":  {disk: whole + gib, grown: gib},
		"another partition follows": {disk: whole + 8*gib, behind: []part{{5, ephemeral.offset + ephemeral.size, 8 * gib}}},
		"the next partition is behind free space": {disk: whole + 8*gib, behind: []part{{5, ephemeral.offset + ephemeral.size + 4*gib, 4 * gib}},
			want: []string{"EPHEMERAL"}},
		"a removed partition was between": {
			disk: whole + 8*gib, behind: []part{{6, ephemeral.offset + ephemeral.size + 4*gib, 4 * gib}},
		},
		"Talos has forgotten where the next partition is": {disk: whole + 8*gib, behind: []part{{5, 0, 8 * gib}}},
		"less than a declared disk can grow by":           {disk: whole + gib/4},
		"it has a largest size":                           {disk: whole + gib, configuration: "provisioning: {maxSize: 100GiB}"},
		"it must not grow":                                {disk: whole + gib, configuration: "provisioning: {grow: false}"},
		"it is not ready":                                 {disk: whole + gib, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			live, node, _, talos := rigOf(t, "v1.13.9")
			discover := func(device, parent string, at part) {
				found := block.NewDiscoveredVolume(block.NamespaceName, path.Base(device))
				spec := found.TypedSpec()
				spec.DevPath, spec.ParentDevPath, spec.PartitionIndex, spec.Offset, spec.Size = device, parent, at.index, at.offset, at.size
				require.NoError(t, talos.resources.Create(t.Context(), found))
			}
			discover("/dev/sda", "", part{0, 0, one.disk})
			discover("/dev/sda3", "/dev/sda", part{3, 2205155328, 104857600})
			discover("/dev/sda4", "/dev/sda", ephemeral)
			for _, at := range one.behind {
				discover(fmt.Sprint("/dev/sda", at.index), "/dev/sda", at)
			}
			status := block.NewVolumeStatus(block.NamespaceName, "EPHEMERAL")
			*status.TypedSpec() = block.VolumeStatusSpec{
				Phase: block.VolumePhaseReady, Location: "/dev/sda4", ParentLocation: "/dev/sda", PartitionIndex: 4,
				Size: ephemeral.size + one.grown,
			}
			if one.waits {
				status.TypedSpec().Phase = block.VolumePhaseWaiting
			}
			require.NoError(t, talos.resources.Create(t.Context(), status))
			if one.configuration != "" {
				active, err := configloader.NewFromBytes([]byte(machineConfig + more + one.configuration))
				require.NoError(t, err)
				require.NoError(t, talos.resources.Destroy(t.Context(), config.NewMachineConfig(active).Metadata()))
				require.NoError(t, talos.resources.Create(t.Context(), config.NewMachineConfig(active)))
			}
			grows, err := live.Grows(t.Context(), node)
			require.NoError(t, err)
			assert.Equal(t, one.want, grows)
		})
	}
}
