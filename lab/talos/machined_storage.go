package talos

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"google.golang.org/protobuf/types/known/emptypb"
)

// storageServer lists disks, in maintenance mode and on a configured node.
type storageServer struct {
	storage.UnimplementedStorageServiceServer
	b *boot
}

// Disks lists the machine's disks.
func (s *storageServer) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	out := &storage.Disks{}
	disks := s.b.m.disks()
	for _, key := range diskKeys(disks) {
		disk := disks[key]
		out.Disks = append(out.Disks, &storage.Disk{
			DeviceName: deviceName(key), Model: diskModel, Serial: disk.Serial, Size: s.b.diskSize(key, disk), Type: storage.Disk_SSD,
			BusPath: "/pci0000:00/virtio", Subsystem: "/sys/class/block", SystemDisk: disk == s.b.disk,
		})
	}
	return &storage.DisksResponse{Messages: []*storage.Disks{out}}, nil
}
