// Package rbac holds the roles of a caller of the Talos API and Talos's table of which role may call which method.
package rbac

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// ErrNotAuthorized answers a caller whose roles do not suffice.
var ErrNotAuthorized = status.Error(codes.PermissionDenied, "not authorized")

type rolesKey struct{}

// WithRoles returns a context whose caller has these roles.
func WithRoles(ctx context.Context, roles role.Set) context.Context {
	return context.WithValue(ctx, rolesKey{}, roles)
}

// Roles returns the caller's roles. A call that did not pass authorization has none.
func Roles(ctx context.Context) role.Set {
	if roles, ok := ctx.Value(rolesKey{}).(role.Set); ok {
		return roles
	}
	return role.Zero
}

// PeerRoles reads the roles from the organizations of a client's certificate, as Talos does.
func PeerRoles(ctx context.Context) role.Set {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return role.Zero
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return role.Zero
	}
	roles, _ := role.Parse(info.State.PeerCertificates[0].Subject.Organization)
	if roles.Includes(role.Impersonator) {
		md, _ := metadata.FromIncomingContext(ctx)
		if granted := md.Get(constants.APIAuthzRoleMetadataKey); len(granted) > 0 {
			roles, _ = role.Parse(granted)
		}
	}
	return roles
}

// MetadataRoles reads the roles from the metadata of a call of one of the node's own services.
func MetadataRoles(ctx context.Context) role.Set {
	md, _ := metadata.FromIncomingContext(ctx)
	roles, _ := role.Parse(md.Get(constants.APIAuthzRoleMetadataKey))
	return roles
}

// Authorize checks on machined's side that the caller may call a method. The roles are in the metadata that apid sets.
func Authorize(ctx context.Context, method string) (context.Context, error) {
	roles := MetadataRoles(ctx)
	if !allowed(method).IncludesAny(roles) {
		return nil, ErrNotAuthorized
	}
	return WithRoles(ctx, roles), nil
}

// Stream is a server stream with another context.
type Stream struct {
	grpc.ServerStream
	Ctx context.Context
}

// Context returns the stream's context.
func (s *Stream) Context() context.Context { return s.Ctx }

// allowed returns the roles that may call a method. The lists are those of Talos's machined.
func allowed(method string) role.Set {
	switch method {
	case "/machine.MachineService/EtcdAlarmList", "/machine.MachineService/EtcdMemberList", "/machine.MachineService/EtcdStatus":
		return role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup)
	case "/machine.MachineService/EtcdSnapshot":
		return role.MakeSet(role.Admin, role.Operator, role.EtcdBackup)
	case "/machine.MachineService/EtcdAlarmDisarm", "/machine.MachineService/EtcdDefragment", "/machine.MachineService/ImagePull",
		"/machine.MachineService/PacketCapture", "/machine.MachineService/Reboot", "/machine.MachineService/Restart",
		"/machine.MachineService/ServiceRestart", "/machine.MachineService/ServiceStart", "/machine.MachineService/ServiceStop",
		"/machine.MachineService/Shutdown", "/machine.ImageService/Pull":
		return role.MakeSet(role.Admin, role.Operator)
	case "/machine.MachineService/CPUInfo", "/machine.MachineService/CPUFreqStats", "/machine.MachineService/Containers",
		"/machine.MachineService/DiskStats", "/machine.MachineService/DiskUsage", "/machine.MachineService/Dmesg",
		"/machine.MachineService/Events", "/machine.MachineService/Hostname", "/machine.MachineService/ImageList",
		"/machine.MachineService/List", "/machine.MachineService/LoadAvg", "/machine.MachineService/Logs",
		"/machine.MachineService/LogsContainers", "/machine.MachineService/Memory", "/machine.MachineService/Mounts",
		"/machine.MachineService/NetworkDeviceStats", "/machine.MachineService/Netstat", "/machine.MachineService/Processes",
		"/machine.MachineService/ServiceList", "/machine.MachineService/Stats", "/machine.MachineService/SystemStat",
		"/machine.ImageService/List", "/machine.MachineService/Version", "/cluster.ClusterService/HealthCheck", "/cosi.resource.State/Get",
		"/cosi.resource.State/List", "/cosi.resource.State/Watch", "/storage.StorageService/Disks",
		"/time.TimeService/Time", "/time.TimeService/TimeCheck":
		return role.MakeSet(role.Admin, role.Operator, role.Reader)
	default:
		return role.MakeSet(role.Admin)
	}
}
