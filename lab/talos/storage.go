package talos

import (
	"context"
	"maps"
	"slices"

	blockpb "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/vm"
)

// storageServer lists disks, in maintenance mode and on a configured node alike.
type storageServer struct {
	storage.UnimplementedStorageServiceServer
	b *boot
}

// Disks lists the machine's disks.
func (s *storageServer) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	out := &storage.Disks{}
	for _, key := range slices.Sorted(maps.Keys(s.b.m.hw.Disks)) {
		disk := s.b.m.hw.Disks[key]
		if device := deviceName(key); device != "" {
			out.Disks = append(out.Disks, &storage.Disk{
				DeviceName: device, Model: "QEMU HARDDISK", Size: uint64(disk.Size), Type: storage.Disk_SSD,
				BusPath: "/pci0000:00/virtio", Subsystem: "/sys/class/block", SystemDisk: disk == s.b.disk,
			})
		}
	}
	return &storage.DisksResponse{Messages: []*storage.Disks{out}}, nil
}

// diskProto is a disk as the expressions of machine.install.diskSelector see it.
func diskProto(key string, d *vm.Disk) *blockpb.DiskSpec {
	return &blockpb.DiskSpec{DevPath: deviceName(key), Size: uint64(d.Size), Model: "QEMU HARDDISK", Transport: "virtio", SectorSize: 512, IoSize: 512}
}
