package talos

import (
	"context"
	"net"
	"strings"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/talos/apid"
	"github.com/slipway-platform/slipway/lab/talos/health"
	"github.com/slipway-platform/slipway/lab/talos/rbac"
	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// machinedServer is the API of a configured node. apid forwards calls to it.
type machinedServer struct {
	machine.UnimplementedMachineServiceServer
	b *boot
}

// serveMachined starts the node's machined on an in-memory connection and returns the client side for apid.
func (b *boot) serveMachined() (*grpc.Server, *grpc.ClientConn, error) {
	pipe := bufconn.Listen(1 << 20)
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			ctx, err := rbac.Authorize(ctx, info.FullMethod)
			if err != nil {
				return nil, err
			}
			reply, err := next(ctx, req)
			return reply, notModelled(info.FullMethod, err)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			ctx, err := rbac.Authorize(ss.Context(), info.FullMethod)
			if err != nil {
				return err
			}
			return notModelled(info.FullMethod, next(srv, &rbac.Stream{ServerStream: ss, Ctx: ctx}))
		}),
	)
	machine.RegisterMachineServiceServer(server, &machinedServer{b: b})
	if versions.Since(b.version, "v1.13") { // an earlier version answers Unimplemented, "unknown service"
		machine.RegisterImageServiceServer(server, &imageServer{b: b})
		machine.RegisterLifecycleServiceServer(server, &lifecycleServer{b: b})
	}
	storage.RegisterStorageServiceServer(server, b.devices)
	clusterapi.RegisterClusterServiceServer(server, &health.Server{Resources: b.res, Journal: &b.Journal, Dial: b.dialAPI})
	timeapi.RegisterTimeServiceServer(server, &timeServer{b: b})
	cosiv1alpha1.RegisterStateServer(server, b.res.Server())
	conn, err := grpc.NewClient("passthrough:///machined",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }),
		apid.CallOptions(),
	)
	if err != nil {
		return nil, nil, err
	}
	b.wg.Go(func() { _ = server.Serve(pipe) })
	return server, conn, nil
}

// notModelled replaces the answer of a generated stub, so that nobody takes it for a missing function of Talos.
func notModelled(method string, err error) error {
	if status.Code(err) != codes.Unimplemented || !strings.HasPrefix(status.Convert(err).Message(), "method ") {
		return err
	}
	return status.Errorf(codes.Unimplemented, "%s is not modelled by the lab's simulated Talos nodes", method)
}

// requireControlPlane refuses calls that only control planes answer.
func (s *machinedServer) requireControlPlane(api string) error {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	if s.b.config.Machine().Type().IsControlPlane() {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", api)
}

// Version returns the Talos version that the node runs.
func (s *machinedServer) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	return &machine.VersionResponse{Messages: []*machine.Version{{
		Version:  &machine.VersionInfo{Tag: s.b.version, Sha: "simulated", GoVersion: "go1.25.7", Os: "linux", Arch: "amd64"},
		Platform: &machine.PlatformInfo{Name: s.b.inst.platform, Mode: "cloud"},
		Features: &machine.FeaturesInfo{Rbac: true},
	}}}, nil
}

// Bootstrap creates the etcd cluster, empty or from the snapshot that a client has uploaded. That the snapshot cannot be read is an error
// of the service etcd, and not of the call.
func (s *machinedServer) Bootstrap(_ context.Context, in *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	var from *recovery
	if in.RecoverEtcd {
		from = &recovery{skipHashCheck: in.RecoverSkipHashCheck}
	}
	if err := s.b.bootstrapEtcd(from); err != nil {
		return nil, err
	}
	if err := s.b.loseBootstrapReply(); err != nil {
		return nil, err
	}
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}
