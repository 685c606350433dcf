package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/image"
)

// Reboot restarts the node. Talos answers before the sequence starts, also when it cannot start.
func (s *machinedServer) Reboot(_ context.Context, in *machine.RebootRequest) (*machine.RebootResponse, error) {
	actor := uuid.NewString()
	s.b.begin(&sequence{name: "reboot", actor: actor, then: endReboot, abrupt: in.Mode == machine.RebootRequest_FORCE,
		powerCycle: in.Mode == machine.RebootRequest_POWERCYCLE})
	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

// Shutdown drains the node, unless it is forced, and powers it off.
func (s *machinedServer) Shutdown(_ context.Context, in *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	actor := uuid.NewString()
	s.b.begin(&sequence{name: "shutdown", actor: actor, then: endOff, takeover: true, drains: !in.Force})
	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}

// Reset wipes the node. A graceful reset leaves etcd first. Then the node reboots, into maintenance mode if it has a
// boot image, or powers off. Wiping STATE alone removes the configuration; wiping EPHEMERAL alone removes etcd's data.
func (s *machinedServer) Reset(_ context.Context, in *machine.ResetRequest) (*machine.ResetResponse, error) {
	b := s.b
	if len(in.UserDisksToWipe) > 0 {
		if in.Mode == machine.ResetRequest_SYSTEM_DISK {
			return nil, errors.New("reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
		}
		for _, device := range in.UserDisksToWipe {
			if !b.m.disks.Has(device) {
				return nil, fmt.Errorf("reset user disk failed: device %s wasn't found", device)
			}
		}
		return nil, status.Error(codes.Unimplemented, "wiping of user disks is not modelled by the lab's simulated Talos nodes")
	}
	if in.Mode == machine.ResetRequest_USER_DISKS && len(in.SystemPartitionsToWipe) > 0 {
		return nil, errors.New("reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter")
	}
	known := []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel, constants.MetaPartitionLabel}
	wipe := map[string]bool{}
	for _, p := range in.SystemPartitionsToWipe {
		if !slices.Contains(known, p.Label) {
			return nil, status.Errorf(codes.NotFound, "failed to get volume status with label %q: resource VolumeStatuses.block.talos.dev(runtime/%s@undefined) doesn't exist", p.Label, p.Label)
		}
		wipe[p.Label] = p.Wipe
	}
	seq := &sequence{name: "reset", actor: uuid.NewString(), then: endOff, drains: in.Graceful, mayFail: true}
	if in.Reboot {
		seq.then = endReboot
	}
	b.site.mu.Lock()
	member := b.inst.etcd != nil
	b.site.mu.Unlock()
	if in.Graceful && member {
		seq.beforeStop = b.leaveEtcd
	}
	everything := len(in.SystemPartitionsToWipe) == 0 && in.Mode != machine.ResetRequest_USER_DISKS
	seq.afterName, seq.afterStop = "resetSystemDisk", func(context.Context) error { b.wipe(everything, wipe); return nil }
	b.begin(seq)
	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: seq.actor}}}, nil
}

// wipe removes what a reset names. Real Talos without configuration boots into maintenance mode, as a machine with an
// empty disk does from its image. So both are modelled as an empty disk.
func (b *boot) wipe(everything bool, partitions map[string]bool) {
	b.site.mu.Lock()
	if everything || partitions[constants.EphemeralPartitionLabel] {
		b.inst.etcd, b.inst.joined, b.inst.images, b.inst.written = nil, false, image.NewStore(), nil
		b.inst.volumes.WipeEphemeral()
	}
	lost := everything || partitions[constants.StatePartitionLabel]
	if lost {
		b.inst.etcd = nil
		b.disk.Content = nil
	}
	b.site.mu.Unlock()
	if lost {
		b.m.setReason("")
	}
	if lost && b.cluster != nil {
		b.cluster.removeNode(b.inst.nodeID)
	}
}
