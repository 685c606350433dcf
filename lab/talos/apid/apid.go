// Package apid is the API front of a configured Talos node. It checks the client's certificate and forwards each call,
// byte for byte, to the machined of the nodes that the call's metadata names. It does not know the methods.
package apid

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/siderolabs/grpc-proxy/proxy"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/rbac"
)

// Backend returns the connection to the machined of a node, which has CallOptions. The empty target is this node itself.
type Backend func(target string) (*grpc.ClientConn, error)

// CallOptions are those of the connections to machined: they take messages of Talos's size, as they are encoded.
func CallOptions() grpc.DialOption {
	return grpc.WithDefaultCallOptions(grpc.ForceCodecV2(proxy.Codec()), grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize))
}

// Server is apid of one node.
type Server struct {
	backend     Backend
	grpc        *grpc.Server
	local       *grpc.Server
	connections connections
}

// New returns a server that forwards calls to the backends.
func New(tlsConfig *tls.Config, backend Backend) *Server {
	s := &Server{backend: backend}
	s.grpc = s.server(rbac.PeerRoles, grpc.Creds(credentials.NewTLS(tlsConfig)))
	s.local = s.server(rbac.MetadataRoles)
	return s
}

// server is a gRPC server that forwards every call with the roles that roles reads.
func (s *Server) server(roles func(context.Context) role.Set, opts ...grpc.ServerOption) *grpc.Server {
	direct := func(ctx context.Context, method string) (proxy.Mode, []proxy.Backend, error) {
		return s.direct(ctx, method, roles)
	}
	return grpc.NewServer(append(opts,
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.ForceServerCodecV2(proxy.Codec()),
		grpc.UnknownServiceHandler(proxy.TransparentHandler(direct, proxy.WithStreamedDetector(streamed))),
	)...)
}

// Serve answers on a listener until Stop.
func (s *Server) Serve(l net.Listener) error {
	return s.grpc.Serve(trackedListener{Listener: l, connections: &s.connections})
}

// ServeLocal answers the node's own services until Stop, as apid's socket does: the caller's roles are in the metadata.
func (s *Server) ServeLocal(l net.Listener) error { return s.local.Serve(l) }

// Stop closes every listener and connection.
func (s *Server) Stop() {
	s.grpc.Stop()
	s.local.Stop()
}

// Drain refuses new calls and waits until the replies to pending ones have been sent, at most for a limit: a stream has no end.
func (s *Server) Drain(limit time.Duration) {
	timer := time.AfterFunc(limit, s.Stop)
	defer timer.Stop()
	s.grpc.GracefulStop()
}

// CloseConnections closes the clients' connections and keeps listening.
func (s *Server) CloseConnections() { s.connections.closeAll() }

// direct finds the nodes for a call as apid's director does: one if the metadata has "node", many if it has "nodes", otherwise this node.
func (s *Server) direct(ctx context.Context, method string, roles func(context.Context) role.Set) (proxy.Mode, []proxy.Backend, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	targets, many := md["nodes"]
	node, one := md["node"]
	switch {
	case one && len(node) != 1:
		return proxy.One2One, nil, status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	case many && strings.HasPrefix(method, "/cosi."):
		return proxy.One2One, nil, status.Error(codes.InvalidArgument, "one-2-many proxying is not supported for COSI methods")
	case !many && one:
		targets = node
	case !many:
		targets = []string{""}
	}
	var backends []proxy.Backend
	for _, target := range targets {
		backends = append(backends, backend{s, target, roles})
	}
	if many {
		return proxy.One2Many, backends, nil
	}
	return proxy.One2One, backends, nil
}

// backend is the machined of a node for the proxy.
type backend struct {
	s      *Server
	target string
	roles  func(context.Context) role.Set
}

func (b backend) String() string { return b.target }

// GetConnection returns the connection to machined, and a context with the metadata that machined gets.
func (b backend) GetConnection(ctx context.Context, _ string) (context.Context, *grpc.ClientConn, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	out := md.Copy()
	out.Set(constants.APIAuthzRoleMetadataKey, b.roles(ctx).Strings()...)
	for _, k := range []string{":authority", "nodes", "node", "content-type", "user-agent"} {
		delete(out, k)
	}
	conn, err := b.s.backend(b.target)
	return metadata.NewOutgoingContext(ctx, out), conn, err
}
