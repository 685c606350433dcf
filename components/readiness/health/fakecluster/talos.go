package fakecluster

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/siderolabs/crypto/x509"
)

// TalosNode is what a node answers.
type TalosNode struct {
	Services map[string]*machineapi.ServiceInfo
	Members  []*machineapi.EtcdMember
	Err      error // instead of any answer
}

// Talos answers for all nodes on one address, as an apid that proxies does.
type Talos struct {
	machineapi.UnimplementedMachineServiceServer

	Config string // talosconfig

	mu    sync.Mutex
	nodes map[string]*TalosNode // by address
}

// NewTalos serves until the test ends.
func NewTalos(t testing.TB) *Talos {
	t.Helper()
	id := newIdentity(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := clientconfig.NewConfig("fake", []string{listener.Addr().String()}, id.cert, &x509.PEMEncodedCertificateAndKey{Crt: id.cert, Key: id.key})
	text, err := config.Bytes()
	require.NoError(t, err)
	talos := &Talos{Config: string(text), nodes: map[string]*TalosNode{}}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{id.pair}, ClientCAs: id.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	})))
	machineapi.RegisterMachineServiceServer(server, talos)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return talos
}

// Change changes what the node at an address answers.
func (s *Talos) Change(address string, change func(*TalosNode)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.nodes[address]
	if node == nil {
		node = &TalosNode{Services: map[string]*machineapi.ServiceInfo{}}
		s.nodes[address] = node
	}
	change(node)
}

// Running is a service in good health.
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

// EtcdMemberList implements the Talos API.
func (s *Talos) EtcdMemberList(ctx context.Context, _ *machineapi.EtcdMemberListRequest) (*machineapi.EtcdMemberListResponse, error) {
	members := &machineapi.EtcdMembers{}
	err := s.answer(ctx, func(node *TalosNode) { members.Members = node.Members })
	return &machineapi.EtcdMemberListResponse{Messages: []*machineapi.EtcdMembers{members}}, err
}
