package fakecluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// TalosNode is the state of a node.
type TalosNode struct {
	Services map[string]*machineapi.ServiceInfo
	Members  []*machineapi.EtcdMember
	Leader   uint64
	Alarms   []*machineapi.EtcdMemberAlarm
	Logs     map[string]string // by service
	Err      error             // the answer to every call, if not nil
	Failing  func() bool       // whether the next call is answered with an internal error; nil: none is
	Version  string            // of Talos; "" means TalosVersion

	PodCIDRs, ServiceCIDRs []string // of its controller manager; none: the resource is not served

	Parameters map[string]string // kernel parameters, all 1 in its configuration, with the values that Talos has set; "": none

	changed chan struct{} // closed and replaced when something changes
}

// Talos answers for all nodes on one address, as apid does when it is a proxy.
type Talos struct {
	machineapi.UnimplementedMachineServiceServer

	Config   string // talosconfig
	Snapshot []byte // of etcd, which every node sends
	Leader   uint64 // that etcd has by the answer to a request which names no node, as that for a snapshot; 0: none

	mu    sync.Mutex
	nodes map[string]*TalosNode // by address
	calls map[string]int        // by method
}

// NewTalos starts a server that runs until the test ends.
func NewTalos(t testing.TB) *Talos {
	t.Helper()
	id := newIdentity(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := clientconfig.NewConfig("fake", []string{listener.Addr().String()}, id.cert,
		&x509.PEMEncodedCertificateAndKey{Crt: id.cert, Key: id.key})
	text, err := config.Bytes()
	require.NoError(t, err)
	talos := &Talos{Config: string(text), nodes: map[string]*TalosNode{}, calls: map[string]int{}}
	server := grpc.NewServer(grpc.UnaryInterceptor(talos.countUnary), grpc.StreamInterceptor(talos.countStream),
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{id.pair}, ClientCAs: id.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		})))
	machineapi.RegisterMachineServiceServer(server, talos)
	v1alpha1.RegisterStateServer(server, &resources{talos: talos})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return talos
}

// Change changes the state of the node at an address.
func (s *Talos) Change(address string, change func(*TalosNode)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.nodes[address]
	if node == nil {
		node = &TalosNode{Services: map[string]*machineapi.ServiceInfo{}, changed: make(chan struct{})}
		s.nodes[address] = node
	}
	change(node)
	close(node.changed)
	node.changed = make(chan struct{})
}

// Calls returns the number of calls of each method.
func (s *Talos) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

func (s *Talos) count(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
}

func (s *Talos) countUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	s.count(info.FullMethod)
	return handler(ctx, request)
}

func (s *Talos) countStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s.count(info.FullMethod)
	return handler(server, stream)
}

// Running returns a healthy service.
func Running(id string) *machineapi.ServiceInfo {
	return &machineapi.ServiceInfo{Id: id, State: "Running", Health: &machineapi.ServiceHealth{Healthy: true}}
}

func (s *Talos) answer(ctx context.Context, with func(*TalosNode)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	addresses := md.Get("node")
	if len(addresses) != 1 {
		return status.Error(codes.InvalidArgument, "the request names no node")
	}
	node := s.nodes[addresses[0]]
	if node == nil {
		return status.Errorf(codes.Unavailable, "no route to host %s", addresses[0])
	}
	if node.Err != nil {
		return node.Err
	}
	if node.Failing != nil && node.Failing() {
		return status.Error(codes.Unavailable, "busy")
	}
	with(node)
	return nil
}

// ServiceList implements the Talos API.
func (s *Talos) ServiceList(ctx context.Context, _ *emptypb.Empty) (*machineapi.ServiceListResponse, error) {
	list := &machineapi.ServiceList{}
	err := s.answer(ctx, func(node *TalosNode) {
		for _, service := range node.Services {
			list.Services = append(list.Services, service)
		}
	})
	return &machineapi.ServiceListResponse{Messages: []*machineapi.ServiceList{list}}, err
}

// Version implements the Talos API.
func (s *Talos) Version(ctx context.Context, _ *emptypb.Empty) (*machineapi.VersionResponse, error) {
	version := &machineapi.VersionInfo{}
	err := s.answer(ctx, func(node *TalosNode) { version.Tag = cmp.Or(node.Version, TalosVersion) })
	return &machineapi.VersionResponse{Messages: []*machineapi.Version{{Version: version}}}, err
}

// EtcdMemberList implements the Talos API.
func (s *Talos) EtcdMemberList(ctx context.Context, _ *machineapi.EtcdMemberListRequest) (*machineapi.EtcdMemberListResponse, error) {
	members := &machineapi.EtcdMembers{}
	err := s.answer(ctx, func(node *TalosNode) { members.Members = node.Members })
	return &machineapi.EtcdMemberListResponse{Messages: []*machineapi.EtcdMembers{members}}, err
}

// EtcdStatus implements the Talos API.
func (s *Talos) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machineapi.EtcdStatusResponse, error) {
	member, err := &machineapi.EtcdMemberStatus{Leader: s.Leader}, error(nil)
	if md, _ := metadata.FromIncomingContext(ctx); len(md.Get("node")) > 0 {
		err = s.answer(ctx, func(node *TalosNode) { member.Leader = node.Leader })
	}
	return &machineapi.EtcdStatusResponse{Messages: []*machineapi.EtcdStatus{{MemberStatus: member}}}, err
}

// EtcdAlarmList implements the Talos API.
func (s *Talos) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machineapi.EtcdAlarmListResponse, error) {
	alarm := &machineapi.EtcdAlarm{}
	err := s.answer(ctx, func(node *TalosNode) { alarm.MemberAlarms = node.Alarms })
	return &machineapi.EtcdAlarmListResponse{Messages: []*machineapi.EtcdAlarm{alarm}}, err
}

// Logs implements the Talos API.
func (s *Talos) Logs(request *machineapi.LogsRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	text := ""
	if err := s.answer(stream.Context(), func(node *TalosNode) { text = node.Logs[request.GetId()] }); err != nil {
		return err
	}
	return stream.Send(&common.Data{Bytes: []byte(text)})
}

// EtcdSnapshot implements the Talos API.
func (s *Talos) EtcdSnapshot(_ *machineapi.EtcdSnapshotRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	for chunk := range slices.Chunk(s.Snapshot, 32<<10) {
		if err := stream.Send(&common.Data{Bytes: chunk}); err != nil {
			return err
		}
	}
	return nil
}
