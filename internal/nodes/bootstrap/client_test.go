package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// server is a Talos API on the loopback that models etcd's service and the bootstrap call.
type server struct {
	machine.UnimplementedMachineServiceServer

	mu    sync.Mutex
	data  bool
	boots bool // etcd has data and does not run yet
	calls int

	unreadable string // a folder that the node cannot read, as from a bad disk

	uploaded  []byte
	recovered bool // the last bootstrap asked for a recovery
}

func (s *server) List(in *machine.ListRequest, out machine.MachineService_ListServer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{".", "containerd", "etcd"}
	if s.data {
		names = append(names, "etcd/member")
	}
	s.boots = false
	for _, name := range names {
		if err := out.Send(&machine.FileInfo{Name: in.GetRoot() + name, RelativeName: name}); err != nil {
			return err
		}
	}
	if s.unreadable != "" { // as Talos sends it: after the folder, with its whole path alone
		return out.Send(&machine.FileInfo{Name: s.unreadable, Error: "readdirent " + s.unreadable + ": input/output error"})
	}
	return nil
}

func (s *server) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	etcd := &machine.ServiceInfo{Id: "etcd", State: "Preparing", Health: &machine.ServiceHealth{Unknown: true}}
	if s.data && !s.boots {
		etcd.State, etcd.Health = "Running", &machine.ServiceHealth{Healthy: true}
	}
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: []*machine.ServiceInfo{{Id: "apid"}, etcd}}}}, nil
}

func (s *server) EtcdRecover(in grpc.ClientStreamingServer[common.Data, machine.EtcdRecoverResponse]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		data, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return in.SendAndClose(&machine.EtcdRecoverResponse{Messages: []*machine.EtcdRecover{{}}})
		}
		if err != nil {
			return err
		}
		s.uploaded = append(s.uploaded, data.GetBytes()...)
	}
}

func (s *server) Bootstrap(_ context.Context, in *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.recovered = in.GetRecoverEtcd()
	if s.data {
		return nil, status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	s.data = true
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// serve starts the API with mutual TLS and returns how to connect to it, and a talosconfig for it.
func serve(t *testing.T, s *server) (connect grpc.DialOption, talosconfig string) {
	t.Helper()
	connect, client := talosapitest.Serve(t, true, func(server *grpc.Server) { machine.RegisterMachineServiceServer(server, s) })
	config, err := client.Bytes()
	require.NoError(t, err)
	return connect, string(config)
}

// servedSpec returns the spec of a cluster with one node, whose API is served.
func servedSpec(talosconfig string) Spec {
	node := controlPlaneAt(cp1, talosapitest.Address.String())
	return Spec{Target: turn.Target{Cluster: "infra", Talosconfig: talosconfig, Nodes: []turn.Node{node}}}
}

// runWith is Run with a connection for tests.
func runWith(t *testing.T, connect grpc.DialOption, spec Spec, progress io.Writer) (Report, error) {
	t.Helper()
	clients, err := dial(t.Context(), &spec, connect)
	require.NoError(t, err)
	defer clients.Close()
	return run(t.Context(), spec, clients, progress)
}

func TestRun_CallsTheTalosAPI(t *testing.T) {
	api := &server{}
	connect, talosconfig := serve(t, api)
	spec := servedSpec(talosconfig)

	first, err := runWith(t, connect, spec, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp1, Bootstrapped: true}, first)

	second, err := runWith(t, connect, spec, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp1}, second)
	assert.Equal(t, 1, api.calls)
}

func TestRun_DoesNotBootstrapBesideAControlPlaneThatBootsWithItsData(t *testing.T) {
	// All servers of a test are on one address and differ by port; each has its own certificate authority, so the data is on the node itself.
	api := &server{data: true, boots: true}
	connect, talosconfig := serve(t, api)
	spec := servedSpec(talosconfig)
	var progress bytes.Buffer
	result, err := runWith(t, connect, spec, &progress)
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp1}, result)
	assert.Contains(t, progress.String(), "has etcd data, and its etcd is Preparing")
	assert.Zero(t, api.calls)
}

func TestClients_DataOfEtcdThatCannotBeReadMayBeThere(t *testing.T) {
	for unreadable, known := range map[string]bool{"/var/lib/etcd": false, "/var/lib": false, "": true, "/var/lib/containerd": true} {
		connect, talosconfig := serve(t, &server{unreadable: unreadable})
		spec := servedSpec(talosconfig)
		nodes, err := dial(t.Context(), &spec, connect)
		require.NoError(t, err)
		defer nodes.Close()
		seen, err := nodes.etcd(t.Context(), spec.Nodes[0])
		if known {
			require.NoError(t, err, unreadable)
			assert.False(t, seen.data, unreadable)
			continue
		}
		require.ErrorContains(t, err, unreadable+": input/output error", "etcd would be bootstrapped beside its data")
	}
}

func TestSpec_ComesBackAsItWasEncoded(t *testing.T) {
	_, talosconfig := serve(t, &server{})
	spec := servedSpec(talosconfig)
	text, err := probe.Encode(&spec)
	require.NoError(t, err)
	var got Spec
	require.NoError(t, probe.Read(strings.NewReader(text), &got))
	assert.Equal(t, spec, got)
}

func TestSpec_NamesEveryProblemAtOnce(t *testing.T) {
	spec := Spec{Target: turn.Target{Nodes: threeNodes[:1], Skip: cluster.SkippedNodes{{Name: cp1}}}}
	for _, want := range []string{"talosconfig: is empty", "cluster: is empty", "skip: names every control plane"} {
		require.ErrorContains(t, spec.Validate(), want)
	}
}

func TestRun_QuotesNothingOfTheTalosconfig(t *testing.T) {
	_, err := Run(t.Context(), servedSpec("s3cret: ["), &bytes.Buffer{})
	require.ErrorContains(t, err, "talosconfig: is not a Talos client configuration")
	assert.NotContains(t, err.Error(), "s3cret")
}
