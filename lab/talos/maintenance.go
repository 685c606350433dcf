package talos

import (
	"context"
	"fmt"
	"strings"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/accept"
	"github.com/slipway-platform/slipway/lab/talos/rbac"
	"github.com/slipway-platform/slipway/lab/talos/trustd"
)

// maintenance is the boot from an image: it waits for a machine configuration and installs it.
func (b *boot) maintenance() ending {
	b.addAddresses(ipv4First(b.cloudInit()))
	b.publishRoutes(nil)
	if b.hangs() {
		return b.hang("downloading config")
	}
	server, err := b.serveMaintenance()
	if err != nil {
		b.Printk("[talos] maintenance service failed: %v", err)
		b.log.Error("maintenance service", "error", err)
		<-b.ctx.Done()
		return endOff
	}
	stop := context.AfterFunc(b.ctx, server.Stop)
	defer stop()
	defer server.Stop()
	b.Printk("[talos] this machine is reachable at: %v", b.primary())
	b.setStage(StageMaintenance)
	b.site.mu.Lock()
	stuck := anyInstalled(b.m.hw)
	b.site.mu.Unlock()
	if stuck {
		b.m.setReason("the configuration on its disk cannot be read")
		b.wg.Go(b.awaitUnstuck)
	}
	select {
	case cfg := <-b.applied:
		drain(server)
		return b.install(cfg)
	case seq := <-b.requests:
		return b.stop(seq)
	case <-b.ctx.Done():
		return endOff
	}
}

// drainLimit is how long a connected client can delay the end of the maintenance service.
const drainLimit = 2 * time.Second

// drain waits until pending replies have reached their clients.
func drain(server *grpc.Server) {
	t := time.AfterFunc(drainLimit, server.Stop)
	defer t.Stop()
	server.GracefulStop()
}

func (b *boot) serveMaintenance() (*grpc.Server, error) {
	b.site.mu.Lock()
	addresses := addrsOf(b.addresses)
	b.site.mu.Unlock()
	tlsConfig, err := trustd.MaintenanceTLS(addresses)
	if err != nil {
		return nil, err
	}
	reader := func(ctx context.Context) context.Context { return rbac.WithRoles(ctx, role.MakeSet(role.Reader)) }
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tlsConfig)),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, call *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if text, is := refused[call.FullMethod]; is {
				return nil, status.Error(codes.Unimplemented, text)
			}
			return next(reader(ctx), req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, &rbac.Stream{ServerStream: ss, Ctx: reader(ss.Context())})
		}),
	)
	api := &maintenanceServer{b: b}
	machine.RegisterMachineServiceServer(server, api)
	storage.RegisterStorageServiceServer(server, b.devices)
	cosiv1alpha1.RegisterStateServer(server, b.res.Server())
	listeners, err := b.listen(addresses)
	if err != nil {
		return nil, err
	}
	for _, l := range listeners {
		b.wg.Go(func() { _ = server.Serve(l) })
	}
	return server, nil
}

// maintenanceServer answers as Talos's maintenance service does to a client without certificate: it accepts a
// configuration. Everything else is Unimplemented.
type maintenanceServer struct {
	machine.UnimplementedMachineServiceServer
	b *boot
}

// ApplyConfiguration accepts the machine's first configuration.
func (s *maintenanceServer) ApplyConfiguration(ctx context.Context, in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	switch in.Mode {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_REBOOT, machine.ApplyConfigurationRequest_AUTO:
	default:
		return nil, status.Errorf(codes.Unimplemented, "apply configuration --mode='%s' is not supported in maintenance mode",
			strings.ReplaceAll(strings.ToLower(in.Mode.String()), "_", "-"))
	}
	cfg, err := configloader.NewFromBytes(in.GetData())
	if err != nil {
		return nil, fmt.Errorf("failed to parse config: %w", err) // Unknown here and InvalidArgument on a configured node, as in Talos
	}
	if err := s.b.applyError(); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "configuration validation failed: %s", err)
	}
	warnings, err := accept.Validate(ctx, cfg, s.b.version, s.b.res.State(), false)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "configuration validation failed: %s", err)
	}
	reply := &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{Warnings: warnings}}}
	if in.DryRun {
		reply.Messages[0].ModeDetails = "Dry run summary:\nNode is running in maintenance mode and does not have a config yet."
		return reply, nil
	}
	select {
	case s.b.applied <- cfg:
		return reply, nil
	default:
		return nil, status.Error(codes.FailedPrecondition, "a configuration has been applied already")
	}
}

// refused are the calls that the maintenance service knows and refuses, with its texts. They need a configured node, or a role that a
// client without certificate does not have.
var refused = map[string]string{
	machine.MachineService_Bootstrap_FullMethodName: unimplemented,
	machine.MachineService_GenerateClientConfiguration_FullMethodName: "client configuration (talosconfig) can't be generated in the " +
		"maintenance mode",
	machine.MachineService_Reset_FullMethodName:   unimplemented,
	machine.MachineService_Upgrade_FullMethodName: unimplemented,
	machine.MachineService_Version_FullMethodName: unimplemented,
}

const unimplemented = "API is not implemented in maintenance mode"
