package live

import (
	"context"
	"slices"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// leastGrowth is the least free space behind a partition that counts as growth of its disk. Disks are declared in GiB. Talos uses anything
// above 1 MiB, and leaves as much at the end of a disk (Grow in controllers/block/internal/volumes/grow.go, the same in 1.12 to 1.14).
const leastGrowth = 512 << 20

// Grows returns the volumes of a node that become bigger at its next boot: Talos lets them grow only then, and their disks have grown since
// the last one. A volume with a largest size is none of them.
func (c *Cluster) Grows(ctx context.Context, node turn.Node) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	resources := c.talos[node.Address].COSI
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, resources, config.ActiveID)
	if err != nil {
		return nil, talosapi.Message(err)
	}
	found, err := safe.StateListAll[*block.DiscoveredVolume](ctx, resources)
	if err != nil {
		return nil, talosapi.Message(err)
	}
	var grows []string
	for _, id := range growing(current.Provider()) {
		status, err := safe.StateGetByID[*block.VolumeStatus](ctx, resources, id)
		if state.IsNotFoundError(err) {
			continue
		}
		if err != nil {
			return nil, talosapi.Message(err)
		}
		if spec := status.TypedSpec(); spec.Phase == block.VolumePhaseReady && freeBehind(spec, found) >= leastGrowth {
			grows = append(grows, id)
		}
	}
	return grows, nil
}

// growing returns the ids of the volumes that take all the space that there is: EPHEMERAL does unless its configuration forbids it, and
// user volumes do if theirs demands it.
func growing(of talosconfig.Provider) (ids []string) {
	unlimited := func(volume configconfig.VolumeProvisioningConfig, byDefault bool) bool {
		return volume.Grow().ValueOr(byDefault) && !volume.MaxSize().IsPresent() && !volume.RelativeMaxSize().IsPresent() &&
			!volume.MaxSizeNegative()
	}
	if ephemeral, _ := of.Volumes().ByName(constants.EphemeralPartitionLabel); unlimited(ephemeral.Provisioning(), true) {
		ids = append(ids, constants.EphemeralPartitionLabel)
	}
	for _, volume := range of.UserVolumeConfigs() {
		if unlimited(volume.Provisioning(), false) {
			ids = append(ids, constants.UserVolumePrefix+volume.Name())
		}
	}
	return slices.Sorted(slices.Values(ids))
}

// freeBehind returns the space between a volume's partition and the next one, or the end of the disk; 0 if it is not known. The status has
// the size that Talos has given the partition, which Talos may have discovered with its former size.
func freeBehind(volume *block.VolumeStatusSpec, found safe.List[*block.DiscoveredVolume]) uint64 {
	var start, end uint64
	for one := range found.All() {
		switch spec := one.TypedSpec(); spec.DevPath {
		case volume.Location:
			start = spec.Offset
		case volume.ParentLocation:
			end = spec.Size
		}
	}
	if start == 0 || volume.Size == 0 {
		return 0
	}
	for one := range found.All() {
		if spec := one.TypedSpec(); spec.ParentDevPath == volume.ParentLocation && spec.Offset > start {
			end = min(end, spec.Offset)
		}
	}
	return end - min(end, start+volume.Size)
}
