package live

import (
	"context"
	"math"
	"slices"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/status"

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
	if _, ofCall := status.FromError(err); err != nil && !ofCall && !state.IsNotFoundError(err) {
		return nil, RefusedError("its machine configuration cannot be read") // the cause may quote the configuration
	}
	if err != nil {
		return nil, talosapi.Message(err)
	}
	found, err := safe.StateListAll[*block.DiscoveredVolume](ctx, resources)
	if err != nil {
		return nil, talosapi.Message(err)
	}
	var grows []string
	for _, id := range growing(current.Provider()) {
		volume, err := safe.StateGetByID[*block.VolumeStatus](ctx, resources, id)
		if state.IsNotFoundError(err) {
			continue
		}
		if err != nil {
			return nil, talosapi.Message(err)
		}
		if spec := volume.TypedSpec(); spec.Phase == block.VolumePhaseReady && freeBehind(spec, found) >= leastGrowth {
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

// freeBehind returns the space into which Talos can grow a volume's partition; 0 if it is not known. As Talos, it asks the partition with
// the next index: behind one that was removed, Talos grows nothing (AvailablePartitionGrowth in go-blockdevice, partitioning/gpt/gpt.go).
// The status has the size that Talos has given the partition, which Talos may have discovered with its former size.
func freeBehind(volume *block.VolumeStatusSpec, found safe.List[*block.DiscoveredVolume]) uint64 {
	var start, end uint64
	index, next := uint(volume.PartitionIndex), uint(math.MaxUint) // an index of a partition is positive
	for one := range found.All() {
		switch spec := one.TypedSpec(); {
		case spec.DevPath == volume.Location:
			start = spec.Offset
		case spec.DevPath == volume.ParentLocation && next == math.MaxUint:
			end = spec.Size
		case spec.ParentDevPath == volume.ParentLocation && spec.PartitionIndex > index && spec.PartitionIndex < next:
			next, end = spec.PartitionIndex, spec.Offset
		}
	}
	if start == 0 || volume.Size == 0 || next != math.MaxUint && next != index+1 {
		return 0
	}
	return end - min(end, start+volume.Size)
}
