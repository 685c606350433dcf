package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// apid is the front of a configured node: it checks the client's certificate and hands each call, byte for byte, to
// the machined of the nodes that the call's metadata names. It knows no method.
type apid struct{ b *boot }

// serveAPI opens the node's API.
func (b *boot) serveAPI(tlsConfig *tls.Config, addresses []netip.Addr) error {
	front := &apid{b: b}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tlsConfig)),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(front.handle),
	)
	var listeners []net.Listener
	for _, a := range addresses {
		l, err := b.site.cfg.Listen(a)
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return err
		}
		listeners = append(listeners, l)
	}
	for _, l := range listeners {
		b.wg.Go(func() { _ = server.Serve(trackedListener{Listener: l, connections: &b.connections}) })
	}
	b.onEnd(server.Stop)
	return nil
}

// onEnd runs f when the boot ends, and has teardown wait for it.
func (b *boot) onEnd(f func()) {
	b.wg.Go(func() {
		<-b.ctx.Done()
		f()
	})
}

// handle routes a call as apid's director does: "node" to one node, "nodes" to many, to this one otherwise.
func (a *apid) handle(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	md, _ := metadata.FromIncomingContext(in.Context())
	out := md.Copy()
	out.Set(constants.APIAuthzRoleMetadataKey, peerRoles(in.Context()).Strings()...)
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
		return a.fanOut(ctx, in, method, nodes)
	case one:
		conn, err := a.backend(node[0])
		if err != nil {
			return err
		}
		return a.passThrough(ctx, in, method, conn)
	default:
		conn, err := a.backend("")
		if err != nil {
			return err
		}
		return a.passThrough(ctx, in, method, conn)
	}
}

// backend finds the machined behind a target; the empty one is this node itself.
func (a *apid) backend(target string) (*grpc.ClientConn, error) {
	s := a.b.site
	s.mu.Lock()
	own, cluster, worker := a.b.machined, a.b.cluster, a.b.config != nil && !a.b.config.Machine().Type().IsControlPlane()
	local := target == "" || target == a.b.hostname
	if addr, err := netip.ParseAddr(target); err == nil {
		local = a.b.hasAddress(addr)
	}
	s.mu.Unlock()
	if local {
		if own == nil {
			return nil, status.Error(codes.Unavailable, "machined is not running")
		}
		return own, nil
	}
	if worker {
		return nil, status.Error(codes.PermissionDenied, "no request forwarding")
	}
	other := s.byTarget(target, cluster)
	if other == nil {
		return nil, status.Errorf(codes.Unavailable,
			"connection error: desc = \"transport: Error while dialing: dial tcp %s: connect: no route to host\"", net.JoinHostPort(target, "50000"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other.machined == nil || other.config == nil || !trusts(a.b.config, other.config) {
		return nil, status.Error(codes.Unavailable,
			"connection error: desc = \"transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority\"")
	}
	return other.machined, nil
}

var proxyStream = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// passThrough joins the client with one backend.
func (a *apid) passThrough(ctx context.Context, in grpc.ServerStream, method string, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	back, err := conn.NewStream(ctx, proxyStream, method, grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage))
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
				return // the reason comes out of RecvMsg below
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

// fanOut sends one request to many nodes. A unary call's replies are joined into one message, a stream's are mixed;
// each carries the name of its node, and a node's error takes the place of its reply.
func (a *apid) fanOut(ctx context.Context, in grpc.ServerStream, method string, nodes []string) error {
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
			err := a.callOne(ctx, method, node, request, func(reply []byte) error {
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
			_ = in.SendMsg(&frame{data: marked}) // a client that is gone ends the call anyway
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

// callOne makes one backend's part of a call to many.
func (a *apid) callOne(ctx context.Context, method, node string, request frame, reply func([]byte) error) error {
	conn, err := a.backend(node)
	if err != nil {
		return err
	}
	back, err := conn.NewStream(ctx, proxyStream, method, grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage))
	if err != nil {
		return err
	}
	if err := back.SendMsg(&request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_ = back.CloseSend() // its error comes out of RecvMsg
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

// frame is a message that nobody looks into.
type frame struct{ data []byte }

// rawCodec passes messages on as they are.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("apid: %T is no frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("apid: %T is no frame", v)
	}
	f.data = data.Materialize()
	return nil
}
