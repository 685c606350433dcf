package upgrade

import (
	"cmp"
	"context"
	"encoding/binary"
	"strings"
	"testing"

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
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
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
	version  string // v1.12.6 if it is empty
	applied  *machine.ApplyConfigurationRequest
	upgraded *machine.UpgradeRequest
	pulled   []*machine.ImagePullRequest
	rebooted int
	booted   string            // boot entry; "" without UEFI
	files    map[string]string // by path
	lifecycle
}

// lifecycle is what a node has since Talos 1.13. It answers with the messages that are set, and then with the error.
type lifecycle struct {
	machine.UnimplementedLifecycleServiceServer
	installer  *machine.ImageServicePullRequest
	pullError  error
	installed  *machine.LifecycleServiceUpgradeRequest
	output     []string
	exit       *int32 // nil: none is sent
	afterwards error
}

// puller is the service ImageService of a node.
type puller struct {
	machine.UnimplementedImageServiceServer
	*lifecycle
}

func (s puller) Pull(in *machine.ImageServicePullRequest, out grpc.ServerStreamingServer[machine.ImageServicePullResponse]) error {
	s.installer = in
	if s.pullError != nil {
		return s.pullError
	}
	progress := &machine.ImageServicePullResponse_PullProgress{PullProgress: &machine.ImageServicePullProgress{LayerId: "a"}}
	if err := out.Send(&machine.ImageServicePullResponse{Response: progress}); err != nil {
		return err
	}
	return out.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_Name{Name: in.GetImageRef() + "@pulled"}})
}

func (l *lifecycle) Upgrade(
	in *machine.LifecycleServiceUpgradeRequest, out grpc.ServerStreamingServer[machine.LifecycleServiceUpgradeResponse],
) error {
	l.installed = in
	send := func(progress *machine.LifecycleServiceInstallProgress) error {
		return out.Send(&machine.LifecycleServiceUpgradeResponse{Progress: progress})
	}
	for _, text := range l.output {
		message := &machine.LifecycleServiceInstallProgress_Message{Message: text}
		if err := send(&machine.LifecycleServiceInstallProgress{Response: message}); err != nil {
			return err
		}
	}
	if l.exit != nil {
		code := &machine.LifecycleServiceInstallProgress_ExitCode{ExitCode: *l.exit}
		if err := send(&machine.LifecycleServiceInstallProgress{Response: code}); err != nil {
			return err
		}
	}
	return l.afterwards
}

func (n *node) Reboot(context.Context, *machine.RebootRequest) (*machine.RebootResponse, error) {
	n.rebooted++
	return &machine.RebootResponse{Messages: []*machine.Reboot{{}}}, nil
}

func (n *node) Read(in *machine.ReadRequest, out machine.MachineService_ReadServer) error {
	content, exists := n.files[in.GetPath()]
	if !exists {
		return status.Error(codes.NotFound, "no such file or directory")
	}
	return out.Send(&common.Data{Bytes: []byte(content)})
}

func (n *node) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	return &storage.DisksResponse{}, nil
}

func (n *node) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	tag := cmp.Or(n.version, "v1.12.6")
	return &machine.VersionResponse{Messages: []*machine.Version{{Version: &machine.VersionInfo{Tag: tag}}}}, nil
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

	if n.booted != "" {
		booted := runtime.NewBootedEntrySpec()
		booted.TypedSpec().BootedEntry = n.booted
		require.NoError(t, resources.Create(t.Context(), booted))
	}

	connect, client := talosapitest.Serve(t, configured, func(server *grpc.Server) {
		if n.version != "" {
			machine.RegisterLifecycleServiceServer(server, &n.lifecycle)
			machine.RegisterImageServiceServer(server, puller{lifecycle: &n.lifecycle})
		}
		machine.RegisterMachineServiceServer(server, n)
		storage.RegisterStorageServiceServer(server, n)
		v1alpha1.RegisterStateServer(server, cosi.NewState(resources))
	})
	talosconfig, err := client.Bytes()
	require.NoError(t, err)
	at := turn.Node{Name: "cp-1", Role: cluster.ControlPlane, Address: talosapitest.Address}
	declared := turn.Declared{Target: turn.Target{Talosconfig: string(talosconfig), Nodes: []turn.Node{at}}}
	c, err := dial(t.Context(), &Spec{Declared: declared}, connect)
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
	assert.Equal(t, "registry.k8s.io/kube-apiserver:v1.34.2", seen.running.Configuration.Cluster().APIServer().Image())
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
	assert.False(t, n.upgraded.GetPreserve(), "with it, Talos from 1.13 on does not look at etcd")
	assert.Zero(t, n.rebooted, "Talos reboots itself")
	assert.False(t, n.upgraded.GetStage())
	require.NoError(t, c.Pull(t.Context(), at, versions.APIServer, "a"))
	require.NoError(t, c.Pull(t.Context(), at, versions.Kubelet, "b"))
	assert.Equal(t, common.ContainerdNamespace_NS_CRI, n.pulled[0].GetNamespace())
	assert.Equal(t, common.ContainerdNamespace_NS_SYSTEM, n.pulled[1].GetNamespace())
}

func TestClients_InstallAndRebootFromTalos113On(t *testing.T) {
	for _, version := range []string{"v1.13.0", "v1.14.1"} {
		n := &node{version: version, lifecycle: lifecycle{output: []string{"running Talos installer\n"}, exit: new(int32)}}
		c, at := serve(t, n, true)
		require.NoError(t, c.Upgrade(t.Context(), at, "factory/installer/cafe:v1.14.2"))
		assert.Equal(t, "factory/installer/cafe:v1.14.2", n.installer.GetImageRef())
		assert.Equal(t, common.ContainerDriver_CRI, n.installer.GetContainerd().GetDriver())
		assert.Equal(t, common.ContainerdNamespace_NS_SYSTEM, n.installer.GetContainerd().GetNamespace())
		assert.Equal(t, "factory/installer/cafe:v1.14.2@pulled", n.lifecycle.installed.GetSource().GetImageName())
		assert.Equal(t, common.ContainerdNamespace_NS_SYSTEM, n.lifecycle.installed.GetContainerd().GetNamespace())
		assert.Equal(t, 1, n.rebooted)
		assert.Nil(t, n.upgraded, "the former call")
	}
}

func TestClients_AFailedInstallationIsAnErrorWithTheInstallersLastLine(t *testing.T) {
	failed := int32(4)
	const locked, lost = "another installation/upgrade is already in progress", "error pulling image: not found"
	for name, one := range map[string]struct {
		lifecycle
		want string
	}{
		"exit code": {lifecycle{output: []string{"running pre-fl", "ight\nhost version 1.12.7 is too old", " to upgrade\n\n"}, exit: &failed},
			"the installer ended with exit code 4: host version 1.12.7 is too old to upgrade"},
		"error": {lifecycle{afterwards: status.Error(codes.FailedPrecondition, locked)}, locked},
		"no exit code": {lifecycle{output: []string{"a\nb"}},
			"the answer ends without an exit code of the installer; its last line: b"},
		"no image": {lifecycle{pullError: status.Error(codes.NotFound, lost)}, lost},
	} {
		n := &node{version: "v1.13.9", lifecycle: one.lifecycle}
		c, at := serve(t, n, true)
		require.EqualError(t, c.Upgrade(t.Context(), at, "factory/installer/cafe:v1.14.1"), one.want, name)
		assert.Zero(t, n.rebooted, name)
	}
}

func TestClients_KnowAnInstallationThatHasNotBooted(t *testing.T) {
	entry := func(name string) map[string]string {
		content := []byte{7, 0, 0, 0}
		for _, c := range name + "\x00" {
			content = binary.LittleEndian.AppendUint16(content, uint16(c))
		}
		return map[string]string{"/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f": string(content)}
	}
	for _, one := range []struct {
		runs, booted, next, want string
	}{
		{"v1.13.8", "Talos-v1.13.8.efi", "Talos-v1.13.9.efi", "v1.13.9"},
		{"v1.13.9", "Talos-v1.13.9.efi", "Talos-v1.13.9~1.efi", "v1.13.9"}, // other extensions
		{"v1.13.8", "Talos-v1.13.8.efi", "Talos-v1.13.8.efi", ""},
		{"v1.13.8", "Talos-v1.13.8.efi", "Talos-v1.13.90.efi", "v1.13.90"},
		{"v1.13.9", "talos-v1.13.9.efi", "Talos-v1.13.9.efi", ""}, // the firmware does not keep the case
		{"v1.13.8", "Talos-v1.13.8.efi", "", ""},
		{"v1.13.8", "", "Talos-v1.13.9.efi", ""}, // without UEFI
		{"v1.12.7", "Talos-v1.12.7.efi", "Talos-v1.13.9.efi", ""},
	} {
		n := &node{version: one.runs, booted: one.booted}
		if one.next != "" {
			n.files = entry(one.next)
		}
		c, at := serve(t, n, true)
		next, err := c.Next(t.Context(), at)
		require.NoError(t, err)
		assert.Equal(t, one.want, next, "%+v", one)
		seen, err := c.Look(t.Context(), at)
		require.NoError(t, err)
		assert.Equal(t, one.want, seen.running.Next, "%+v", one)
	}
}
