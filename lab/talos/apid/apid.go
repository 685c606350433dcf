// Package apid is the API front of a configured Talos node. It checks the client's certificate and forwards each call,
// byte for byte, to the machined of the nodes that the call's metadata names. It does not know the methods.
package apid

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/rbac"
)

// Backend returns the connection to the machined of a node. The empty target is this node itself.
type Backend func(target string) (*grpc.ClientConn, error)

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
	return grpc.NewServer(append(opts,
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return s.handle(in, roles(in.Context())) }),
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

// handle forwards a call as apid's director does: to one node if the metadata has "node", to many if it has "nodes",
// otherwise to this node.
func (s *Server) handle(in grpc.ServerStream, roles role.Set) error {
	method, _ := grpc.MethodFromServerStream(in)
	md, _ := metadata.FromIncomingContext(in.Context())
	out := md.Copy()
	out.Set(constants.APIAuthzRoleMetadataKey, roles.Strings()...)
	for _, k := range []string{":authority", "nodes", "node", "content-type", "user-agent"} {
		delete(out, k)
	}
	ctx := metadata.NewOutgoingContext(in.Context(), out)

	nodes, many := md["nodes"]
	node, one := md["node"]
	if one && len(node) != 1 {
		return status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	}
	switch {
	case many && strings.HasPrefix(method, "/cosi."):
		return status.Error(codes.InvalidArgument, "one-2-many proxying is not supported for COSI methods")
	case many:
		return s.forwardToMany(ctx, in, method, nodes)
	case one:
		return s.forward(ctx, in, method, node[0])
	}
	return s.forward(ctx, in, method, "")
}

var proxyStream = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// forward connects the client to one backend.
func (s *Server) forward(ctx context.Context, in grpc.ServerStream, method, target string) error {
	conn, err := s.backend(target)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	back, err := conn.NewStream(ctx, proxyStream, method, grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize))
	if err != nil {
		return err
	}
	go func() {
		for {
			var f frame
			if err := in.RecvMsg(&f); err != nil {
				if errors.Is(err, io.EOF) {
					_ = back.CloseSend()
				} else {
					cancel()
				}
				return
			}
			if back.SendMsg(&f) != nil {
				return // RecvMsg below returns the reason
			}
		}
	}()
	for {
		var f frame
		if err := back.RecvMsg(&f); err != nil {
			in.SetTrailer(back.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := in.SendMsg(&f); err != nil {
			return err
		}
	}
}

// forwardToMany sends one request to many nodes. The replies of a unary call are joined into one message. The messages
// of streams are sent as they arrive. Each reply has the name of its node. A node's error is sent in place of its reply.
func (s *Server) forwardToMany(ctx context.Context, in grpc.ServerStream, method string, nodes []string) error {
	var request frame
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	streaming := streamed(method)
	replies := make([][]byte, len(nodes))
	var sending sync.Mutex
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() {
			err := s.callOne(ctx, method, node, request, func(reply []byte) error {
				marked, err := appendNode(streaming, reply, node)
				if err != nil {
					return err
				}
				if !streaming {
					replies[i] = marked
					return nil
				}
				sending.Lock()
				defer sending.Unlock()
				return in.SendMsg(&frame{data: marked})
			})
			if err == nil {
				return
			}
			marked := nodeError(streaming, node, err)
			if !streaming {
				replies[i] = marked
				return
			}
			sending.Lock()
			defer sending.Unlock()
			_ = in.SendMsg(&frame{data: marked}) // fails only if the client has disconnected, which ends the call
		})
	}
	wg.Wait()
	if streaming {
		return nil
	}
	var joined []byte
	for _, r := range replies {
		joined = append(joined, r...)
	}
	return in.SendMsg(&frame{data: joined})
}

// callOne sends the request to one of many nodes and calls reply with each message that comes back.
func (s *Server) callOne(ctx context.Context, method, node string, request frame, reply func([]byte) error) error {
	conn, err := s.backend(node)
	if err != nil {
		return err
	}
	back, err := conn.NewStream(ctx, proxyStream, method, grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize))
	if err != nil {
		return err
	}
	if err := back.SendMsg(&request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_ = back.CloseSend() // RecvMsg returns its error
	for {
		var f frame
		if err := back.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := reply(f.data); err != nil {
			return err
		}
	}
}

// frame is a message in its encoded form.
type frame struct{ data []byte }

// rawCodec does not decode messages.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("apid: %T is not a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("apid: %T is not a frame", v)
	}
	f.data = data.Materialize()
	return nil
}
