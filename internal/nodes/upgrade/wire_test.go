package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/talosapi/talosapitest"
)

// machineConfig is a control plane's configuration with a second document, as Talos 1.12 has it. The scheduler's image is not named.
const machineConfig = `version: v1alpha1
machine:
  type: controlplane
  token: aaaaaa.bbbbbbbbbbbbbbbb
  kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.34.2"}
cluster:
  controlPlane: {endpoint: "https://10.25.11.10:6443"}
  apiServer: {image: "registry.k8s.io/kube-apiserver:v1.34.2", extraArgs: {v: "2"}}
  controllerManager: {image: "registry.k8s.io/kube-controller-manager:v1.34.2"}
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp-1
`

// node is the part of a node's Talos API that an upgrade uses.
type node struct {
	machine.UnimplementedMachineServiceServer
	storage.UnimplementedStorageServiceServer
	applied  *machine.ApplyConfigurationRequest
	upgraded *machine.UpgradeRequest
	pulled   []*machine.ImagePullRequest
	snapshot []byte
}

func (n *node) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	return &storage.DisksResponse{}, nil
}

func (n *node) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{Messages: []*machine.Version{{Version: &machine.VersionInfo{Tag: "v1.12.6"}}}}, nil
}

func (n *node) ApplyConfiguration(
	_ context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	n.applied = in
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{}}}, nil
}

func (n *node) Upgrade(_ context.Context, in *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	n.upgraded = in
	return nil, status.Error(codes.FailedPrecondition, "etcd member is not healthy")
}

func (n *node) ImagePull(_ context.Context, in *machine.ImagePullRequest) (*machine.ImagePullResponse, error) {
	n.pulled = append(n.pulled, in)
	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}

func (n *node) EtcdSnapshot(_ *machine.EtcdSnapshotRequest, out machine.MachineService_EtcdSnapshotServer) error {
	return out.Send(&common.Data{Bytes: n.snapshot})
}

// serve starts a node, which asks for client certificates once it is configured, and returns clients of it.
func serve(t *testing.T, n *node, configured bool) (clients, turn.Node) {
	t.Helper()
	resources := state.WrapCore(namespaced.NewState(inmem.Build))
	stage := runtime.NewMachineStatus()
	stage.TypedSpec().Stage = runtime.MachineStageRunning
	require.NoError(t, resources.Create(t.Context(), stage))
	provider, err := configloader.NewFromBytes([]byte(machineConfig))
	require.NoError(t, err)
	require.NoError(t, resources.Create(t.Context(), config.NewMachineConfig(provider)))
	for id, version := range map[string]string{"qemu-guest-agent": "10.1.2", "schematic": "cafe"} {
		extension := runtime.NewExtensionStatus(runtime.NamespaceName, id)
		extension.TypedSpec().Metadata.Name, extension.TypedSpec().Metadata.Version = id, version
		require.NoError(t, resources.Create(t.Context(), extension))
	}

	connect, client := talosapitest.Serve(t, configured, func(server *grpc.Server) {
		machine.RegisterMachineServiceServer(server, n)
		storage.RegisterStorageServiceServer(server, n)
		v1alpha1.RegisterStateServer(server, cosi.NewState(resources))
	})
	talosconfig, err := client.Bytes()
	require.NoError(t, err)
	at := turn.Node{Name: "cp-1", Role: cluster.ControlPlane, Address: talosapitest.Address}
	c, err := dial(t.Context(), &Spec{Target: turn.Target{Talosconfig: string(talosconfig), Nodes: []turn.Node{at}}}, connect)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, at
}

func TestClients_ReadWhatANodeRuns(t *testing.T) {
	c, at := serve(t, &node{}, true)
	seen, err := c.Look(t.Context(), at)
	require.NoError(t, err)
	assert.True(t, seen.configured)
	assert.Equal(t, "running", seen.stage)
	assert.Equal(t, "v1.12.6", seen.running.Talos)
	assert.Equal(t, "cafe", seen.running.Schematic)
	assert.Equal(t, at, seen.running.Node)
	assert.Equal(t, "registry.k8s.io/kube-apiserver:v1.34.2", seen.running.Images[versions.APIServer])
	assert.Equal(t, "ghcr.io/siderolabs/kubelet:v1.34.2", seen.running.Images[versions.Kubelet])
	assert.Contains(t, seen.running.Images[versions.Scheduler], "registry.k8s.io/kube-scheduler:v", "Talos's own default")
}

func TestClients_KnowAMachineWithoutAConfiguration(t *testing.T) {
	c, at := serve(t, &node{}, false)
	seen, err := c.Look(t.Context(), at)
	require.NoError(t, err)
	assert.False(t, seen.configured)
}

func TestClients_ChangeOneImageOfTheConfigurationAndNothingElse(t *testing.T) {
	n := &node{}
	c, at := serve(t, n, true)
	require.NoError(t, c.SetImage(t.Context(), at, versions.APIServer, "registry.k8s.io/kube-apiserver:v1.35.8"))
	assert.Equal(t, machine.ApplyConfigurationRequest_NO_REBOOT, n.applied.GetMode())
	want, err := configloader.NewFromBytes([]byte(strings.Replace(machineConfig, "kube-apiserver:v1.34.2", "kube-apiserver:v1.35.8", 1)))
	require.NoError(t, err)
	text, err := want.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	require.NoError(t, err)
	assert.Equal(t, string(text), string(n.applied.GetData()))
	assert.Contains(t, string(text), "kind: HostnameConfig", "other documents stay")
}

func TestClients_UpgradeAndPullAsTalosWantsIt(t *testing.T) {
	n := &node{}
	c, at := serve(t, n, true)
	require.EqualError(t, c.Upgrade(t.Context(), at, "factory/installer/cafe:v1.12.7"), "etcd member is not healthy")
	assert.Equal(t, "factory/installer/cafe:v1.12.7", n.upgraded.GetImage())
	assert.False(t, n.upgraded.GetForce())
	assert.False(t, n.upgraded.GetStage())
	require.NoError(t, c.Pull(t.Context(), at, versions.APIServer, "a"))
	require.NoError(t, c.Pull(t.Context(), at, versions.Kubelet, "b"))
	assert.Equal(t, common.ContainerdNamespace_NS_CRI, n.pulled[0].GetNamespace())
	assert.Equal(t, common.ContainerdNamespace_NS_SYSTEM, n.pulled[1].GetNamespace())
}

func TestClients_KeepTheDeclaredNumberOfSnapshots(t *testing.T) {
	data := make([]byte, 4096)
	binary.LittleEndian.PutUint32(data[16:], 0xED0CDAED)
	sum := sha256.Sum256(data)
	c, at := serve(t, &node{snapshot: append(data, sum[:]...)}, true)
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	spec := &Spec{Target: turn.Target{Cluster: "infra"}, Snapshots: Snapshots{Folder: "snapshots", Keep: 2}}
	for i := range 3 {
		path, err := c.Snapshot(t.Context(), at, spec, time.Now().Add(time.Duration(i)*time.Hour))
		require.NoError(t, err)
		assert.FileExists(t, path)
	}
	files, err := os.ReadDir(home + "/slipway/snapshots")
	require.NoError(t, err)
	assert.Len(t, files, 4, "two snapshots and their checksums")
}
