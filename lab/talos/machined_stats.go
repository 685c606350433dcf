package talos

import (
	"context"
	"path"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/kube/authority"
)

// Hostname is the node's host name.
func (s *machinedServer) Hostname(context.Context, *emptypb.Empty) (*machine.HostnameResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	return &machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: s.b.hostname}}}, nil
}

// Memory returns the VM's memory. The used part is invented.
func (s *machinedServer) Memory(context.Context, *emptypb.Empty) (*machine.MemoryResponse, error) {
	total := uint64(s.b.m.hw.MemoryMiB) << 10 // KiB, as in /proc/meminfo
	return &machine.MemoryResponse{Messages: []*machine.Memory{{Meminfo: &machine.MemInfo{
		Memtotal: total, Memfree: total / 2, Memavailable: total * 3 / 4, Cached: total / 4,
	}}}}, nil
}

// LoadAvg returns invented numbers.
func (s *machinedServer) LoadAvg(context.Context, *emptypb.Empty) (*machine.LoadAvgResponse, error) {
	return &machine.LoadAvgResponse{Messages: []*machine.LoadAvg{{Load1: 0.1, Load5: 0.1, Load15: 0.1}}}, nil
}

// SystemStat returns when the node booted. Its counters are invented.
func (s *machinedServer) SystemStat(context.Context, *emptypb.Empty) (*machine.SystemStatResponse, error) {
	return &machine.SystemStatResponse{Messages: []*machine.SystemStat{{
		BootTime: uint64(s.b.started.Unix()), CpuTotal: &machine.CPUStat{Idle: 100}, ProcessRunning: 1,
	}}}, nil
}

// CPUInfo lists the VM's cores.
func (s *machinedServer) CPUInfo(context.Context, *emptypb.Empty) (*machine.CPUInfoResponse, error) {
	out := &machine.CPUsInfo{}
	for i := range s.b.m.hw.Cores {
		out.CpuInfo = append(out.CpuInfo, &machine.CPUInfo{Processor: uint32(i), VendorId: "simulated", ModelName: "QEMU Virtual CPU",
			CpuCores: uint32(s.b.m.hw.Cores)})
	}
	return &machine.CPUInfoResponse{Messages: []*machine.CPUsInfo{out}}, nil
}

// Mounts lists the system disk's volumes.
func (s *machinedServer) Mounts(context.Context, *emptypb.Empty) (*machine.MountsResponse, error) {
	size := uint64(s.b.disk.Size)
	return &machine.MountsResponse{Messages: []*machine.Mounts{{Stats: []*machine.MountStat{
		{Filesystem: "EPHEMERAL", MountedOn: "/var", Size: size, Available: size / 2},
	}}}}, nil
}

// Read returns the content of the few files that the lab's clients read. Other files are not modelled.
func (s *machinedServer) Read(in *machine.ReadRequest, out machine.MachineService_ReadServer) error {
	s.b.site.mu.Lock()
	content := map[string]string{
		"/proc/sys/kernel/random/boot_id": s.b.id,
		"/etc/hostname":                   s.b.hostname,
		"/etc/machine-id":                 s.b.inst.machineID,
		constants.KubernetesCACert:        string(authority.Accepted(s.b.config.Cluster())),
		"/etc/os-release":                 "NAME=\"Talos\"\nID=talos\nVERSION_ID=" + s.b.version,
	}
	s.b.site.mu.Unlock()
	text, known := content[in.Path]
	if !known {
		return status.Errorf(codes.Unimplemented, "files are not modelled by the lab's simulated Talos nodes: %s", in.Path)
	}
	return out.Send(&common.Data{Bytes: []byte(text + "\n")})
}

// List lists /var/lib, by which clients see whether the node has data of etcd.
func (s *machinedServer) List(in *machine.ListRequest, out machine.MachineService_ListServer) error {
	root := strings.TrimSuffix(in.Root, "/")
	if root != "/var/lib" || !in.Recurse {
		return status.Errorf(codes.Unimplemented, "files are not modelled by the lab's simulated Talos nodes, but a recursive list of /var/lib: %s", in.Root)
	}
	names := []string{".", "containerd", "kubelet"}
	s.b.site.mu.Lock()
	if s.b.config.Machine().Type().IsControlPlane() {
		names = append(names, "etcd")
	}
	if s.b.inst.etcd != nil {
		names = append(names, "etcd/member")
	}
	s.b.site.mu.Unlock()
	for _, name := range names {
		const folder = 0o40000 | 0o700
		if err := out.Send(&machine.FileInfo{Name: path.Join(root, name), RelativeName: name, IsDir: true, Mode: folder}); err != nil {
			return err
		}
	}
	return nil
}
