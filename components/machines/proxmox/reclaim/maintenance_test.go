package reclaim

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"
)

// fakeTalos answers with a CD drive, the loop device of its own file system, and one disk.
type fakeTalos struct {
	storage.UnimplementedStorageServiceServer
	installed bool
	diskless  bool // it has found no disk
}

func (f *fakeTalos) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	disks := []*storage.Disk{
		{DeviceName: "/dev/loop0", Readonly: true}, {DeviceName: "/dev/sr0", Type: storage.Disk_CD},
		{DeviceName: "/dev/sda", SystemDisk: f.installed},
	}
	if f.diskless {
		disks = disks[:2]
	}
	return &storage.DisksResponse{Messages: []*storage.Disks{{Disks: disks}}}, nil
}

// serve returns the address of a Talos API that requests client certificates as clients says.
func serve(t *testing.T, talos *fakeTalos, clients tls.ClientAuthType) string {
	t.Helper()
	certificates := httptest.NewTLSServer(nil)
	defer certificates.Close()
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: certificates.TLS.Certificates, ClientAuth: clients,
	})))
	storage.RegisterStorageServiceServer(server, talos)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func TestInMaintenance_AcceptsOnlyAnUnconfiguredMachine(t *testing.T) {
	require.NoError(t, new(proxmox).inMaintenance(t.Context(), serve(t, &fakeTalos{}, tls.NoClientCert)))

	err := new(proxmox).inMaintenance(t.Context(), serve(t, &fakeTalos{}, tls.RequireAndVerifyClientCert))
	require.ErrorIs(t, err, errHoldsTalos)
	require.ErrorContains(t, err, "client certificate")

	err = new(proxmox).inMaintenance(t.Context(), serve(t, &fakeTalos{installed: true}, tls.NoClientCert))
	require.ErrorIs(t, err, errHoldsTalos)
	require.ErrorContains(t, err, "/dev/sda")

	err = new(proxmox).inMaintenance(t.Context(), serve(t, &fakeTalos{diskless: true}, tls.NoClientCert))
	require.EqualError(t, err, "its Talos shows no disk", "a disk that it does not show may have Talos")
	require.NotErrorIs(t, err, errHoldsTalos, "it may find one later")

	err = new(proxmox).inMaintenance(t.Context(), "127.0.0.1:1")
	require.Error(t, err)
	require.NotErrorIs(t, err, errHoldsTalos, "it may only be booting")
}
