package talos

import (
	"context"
	"encoding/binary"
	"path"
	"strings"
	"unicode/utf16"

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

// Memory returns the size of the VM's memory, which `talosctl health` checks. How much of it is used is not modelled.
func (s *machinedServer) Memory(context.Context, *emptypb.Empty) (*machine.MemoryResponse, error) {
	total := uint64(s.b.m.hw.MemoryMiB) << 10 // KiB, as in /proc/meminfo
	return &machine.MemoryResponse{Messages: []*machine.Memory{{Meminfo: &machine.MemInfo{Memtotal: total}}}}, nil
}

// SystemStat returns when the machine has booted; the rest is not modelled.
func (s *machinedServer) SystemStat(context.Context, *emptypb.Empty) (*machine.SystemStatResponse, error) {
	return &machine.SystemStatResponse{Messages: []*machine.SystemStat{{BootTime: uint64(s.b.began.Unix())}}}, nil //nolint:gosec // after 1970
}

// Read returns the content of the few files that the lab's clients read, and of files that the configuration writes. Other files are not
// modelled.
func (s *machinedServer) Read(in *machine.ReadRequest, out machine.MachineService_ReadServer) error {
	s.b.site.mu.Lock()
	content := map[string]string{
		"/proc/sys/kernel/random/boot_id": s.b.id,
		"/etc/hostname":                   s.b.hostname,
		"/etc/machine-id":                 s.b.inst.machineID,
		constants.KubernetesCACert:        string(authority.Accepted(s.b.config.Cluster())),
		"/etc/os-release":                 "NAME=\"Talos\"\nID=talos\nVERSION_ID=" + s.b.version,
	}
	files := s.b.files
	s.b.site.mu.Unlock()
	if text, written := files[in.Path]; written {
		return out.Send(&common.Data{Bytes: []byte(text)})
	}
	text, known := content[in.Path]
	switch in.Path {
	case defaultEntry:
		return s.readDefaultEntry(out)
	case etcdDatabase:
		return s.readEtcdDatabase(out)
	}
	if !known {
		return status.Errorf(codes.Unimplemented, "files are not modelled by the lab's simulated Talos nodes: %s", in.Path)
	}
	return out.Send(&common.Data{Bytes: []byte(text + "\n")})
}

// defaultEntry is the firmware's variable with the boot entry that boots next.
const defaultEntry = "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

// readDefaultEntry sends that variable: four bytes of attributes, and text in UTF-16 with a zero at its end.
func (s *machinedServer) readDefaultEntry(out machine.MachineService_ReadServer) error {
	if !s.b.m.hw.UEFI {
		return status.Errorf(codes.NotFound, "stat %s: no such file or directory", defaultEntry)
	}
	s.b.site.mu.Lock()
	entry := s.b.inst.entry
	s.b.site.mu.Unlock()
	content := []byte{7, 0, 0, 0}
	for _, c := range utf16.Encode([]rune(entry + "\x00")) {
		content = binary.LittleEndian.AppendUint16(content, c)
	}
	return out.Send(&common.Data{Bytes: content})
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
