package talos

import (
	"context"
	"fmt"
	"net"
	"strings"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
)

// machinedServer is the API of a configured node, behind apid.
type machinedServer struct {
	machine.UnimplementedMachineServiceServer
	b *boot
}

// serveMachined starts the node's machined on a pipe and returns the connection that apid uses.
func (b *boot) serveMachined() (*grpc.Server, *grpc.ClientConn, error) {
	pipe := bufconn.Listen(1 << 20)
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			ctx, err := authorize(ctx, info.FullMethod)
			if err != nil {
				return nil, err
			}
			reply, err := next(ctx, req)
			return reply, notModelled(info.FullMethod, err)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			ctx, err := authorize(ss.Context(), info.FullMethod)
			if err != nil {
				return err
			}
			return notModelled(info.FullMethod, next(srv, &contextStream{ServerStream: ss, ctx: ctx}))
		}),
	)
	machine.RegisterMachineServiceServer(server, &machinedServer{b: b})
	storage.RegisterStorageServiceServer(server, &storageServer{b: b})
	cosiv1alpha1.RegisterStateServer(server, b.res.server())
	conn, err := grpc.NewClient("passthrough:///machined",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }),
	)
	if err != nil {
		return nil, nil, err
	}
	b.wg.Go(func() { _ = server.Serve(pipe) })
	return server, conn, nil
}

// notModelled words what the generated stub of a method answers, so that nobody takes it for a lack of Talos.
func notModelled(method string, err error) error {
	if status.Code(err) != codes.Unimplemented || !strings.HasPrefix(status.Convert(err).Message(), "method ") {
		return err
	}
	return status.Errorf(codes.Unimplemented, "%s is not modelled by the lab's simulated Talos nodes", method)
}

// check refuses calls that only control planes answer.
func (s *machinedServer) check(api string) error {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	if s.b.config.Machine().Type().IsControlPlane() {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", api)
}

// Version names the Talos version that the node runs.
func (s *machinedServer) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	s.b.site.mu.Lock()
	defer s.b.site.mu.Unlock()
	return &machine.VersionResponse{Messages: []*machine.Version{{
		Version:  &machine.VersionInfo{Tag: s.b.version, Sha: "simulated", GoVersion: "go1.25.7", Os: "linux", Arch: "amd64"},
		Platform: &machine.PlatformInfo{Name: s.b.inst.platform, Mode: "cloud"},
		Features: &machine.FeaturesInfo{Rbac: true},
	}}}, nil
}

// Bootstrap founds the etcd cluster.
func (s *machinedServer) Bootstrap(_ context.Context, in *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	if in.RecoverEtcd {
		return nil, status.Error(codes.Unimplemented, "recovery of etcd from a snapshot is not modelled by the lab's simulated Talos nodes")
	}
	if err := s.b.bootstrapEtcd(); err != nil {
		return nil, err
	}
	if err := s.b.loseBootstrapReply(); err != nil {
		return nil, err
	}
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// ServiceList lists the node's services.
func (s *machinedServer) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: s.b.services.list()}}}, nil
}

// permit looks a service up and tells whether it runs and whether Talos lets the API do this with it.
func (s *services) permit(id, operation string, may func(serviceSpec) bool) (running bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	svc := s.all[id]
	if svc == nil {
		return false, fmt.Errorf("service %q not defined", id)
	}
	running = svc.cancel != nil
	if !may(svc.spec) {
		return running, fmt.Errorf("service %q doesn't support %s operation via API", id, operation)
	}
	return running, nil
}

// ServiceStart starts a service.
func (s *machinedServer) ServiceStart(_ context.Context, in *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	running, err := s.b.services.permit(in.Id, "start", func(sp serviceSpec) bool { return sp.canStart })
	if err != nil && !running {
		return nil, err
	}
	if !running {
		if err := s.b.services.want(in.Id, true); err != nil {
			return nil, err
		}
	}
	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: fmt.Sprintf("Service %q started", in.Id)}}}, nil
}

// ServiceStop stops a service.
func (s *machinedServer) ServiceStop(_ context.Context, in *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	running, err := s.b.services.permit(in.Id, "stop", func(sp serviceSpec) bool { return sp.canStop })
	if running && err != nil {
		return nil, err
	}
	if err := s.b.services.want(in.Id, false); err != nil {
		return nil, err
	}
	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{Resp: fmt.Sprintf("Service %q stopped", in.Id)}}}, nil
}

// ServiceRestart restarts a service.
func (s *machinedServer) ServiceRestart(_ context.Context, in *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	if _, err := s.b.services.permit(in.Id, "restart", func(sp serviceSpec) bool { return sp.canRestart }); err != nil {
		return nil, err
	}
	s.b.services.restart(in.Id)
	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: fmt.Sprintf("Service %q restarted", in.Id)}}}, nil
}

// Events streams what the node does: first an empty event, so that the client knows it is connected.
func (s *machinedServer) Events(in *machine.EventsRequest, out machine.MachineService_EventsServer) error {
	if err := out.Send(&machine.Event{ActorId: in.WithActorId}); err != nil {
		return err
	}
	return s.b.events.watch(out.Context(), in, out.Send)
}

// Dmesg streams what the simulator did, in the form of the kernel's log.
func (s *machinedServer) Dmesg(in *machine.DmesgRequest, out machine.MachineService_DmesgServer) error {
	tail := -1
	if in.Follow && in.Tail {
		tail = 0
	}
	return s.b.kmsg.stream(out.Context(), in.Follow, tail, out.Send)
}
