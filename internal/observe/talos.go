package observe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/kernel"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// Talos is a client of the Talos API of a cluster.
type Talos struct {
	context string
	client  *client.Client
}

// NewTalos makes a client from the content of a talosconfig, of which its errors hold nothing. It does not connect.
func NewTalos(ctx context.Context, talosconfig string, calls *Calls) (*Talos, error) {
	config, err := talosapi.ParseConfig(talosconfig)
	if err != nil {
		return nil, err
	}
	c, err := client.New(ctx, client.WithConfig(config), client.WithGRPCDialOptions(
		// By default gRPC waits for up to two minutes before it connects again, and a node that has started must be seen at once.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pollEvery, Multiplier: 1, MaxDelay: pollEvery},
			MinConnectTimeout: askTimeout,
		}),
		grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			calls.Add()
			return invoke(ctx, method, request, reply, conn, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(
			ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			calls.Add()
			return streamer(ctx, desc, conn, method, opts...)
		}),
	))
	if err != nil {
		return nil, fmt.Errorf("talosconfig: %w", err)
	}
	return &Talos{context: config.Context, client: c}, nil
}

// Context returns the name of the talosconfig's current context.
func (t *Talos) Context() string { return t.context }

// Close closes the connections.
func (t *Talos) Close() error { return t.client.Close() }

// watchServices sends an event whenever a service of a node starts, stops, or changes its health. It returns once the watch is established.
func (t *Talos) watchServices(ctx context.Context, node gate.Machine, events chan<- state.Event) error {
	kind := resource.NewMetadata(v1alpha1.NamespaceName, v1alpha1.ServiceType, "", resource.VersionUndefined)
	watching, cancel := context.WithCancel(client.WithNode(ctx, node.Address.String()))
	late := time.AfterFunc(askTimeout, cancel) // a node that accepts no calls must not block
	err := t.client.COSI.WatchKind(watching, kind, events)
	if !late.Stop() && err == nil {
		return context.DeadlineExceeded
	}
	if err != nil {
		cancel()
	}
	return err
}

func (t *Talos) services(ctx context.Context, node gate.Machine) (map[string]talosapi.Service, error) {
	ctx, cancel := context.WithTimeout(client.WithNode(ctx, node.Address.String()), askTimeout)
	defer cancel()
	return talosapi.Services(ctx, t.client)
}

// etcd asks a control plane for members, status and alarms of etcd. If the members cannot be listed, etcd does not run and the rest is not
// asked.
func (t *Talos) etcd(ctx context.Context, node gate.Machine) gate.Etcd {
	ctx, cancel := context.WithTimeout(client.WithNode(ctx, node.Address.String()), askTimeout)
	defer cancel()
	members, err := talosapi.Members(ctx, t.client)
	if err != nil {
		return gate.Etcd{Asked: true, Err: broken(err)}
	}
	seen := gate.Etcd{Asked: true, Members: members}
	status, err := t.client.EtcdStatus(ctx)
	if err != nil {
		seen.StatusErr = broken(err)
		return seen
	}
	for _, message := range status.GetMessages() {
		seen.Leader, seen.Errors = message.GetMemberStatus().GetLeader(), message.GetMemberStatus().GetErrors()
	}
	alarms, err := t.client.EtcdAlarmList(ctx)
	if err != nil {
		seen.StatusErr = broken(err)
		return seen
	}
	for _, message := range alarms.GetMessages() {
		for _, alarm := range message.GetMemberAlarms() {
			if alarm.GetAlarm() != machineapi.EtcdMemberAlarm_NONE {
				seen.Alarms = append(seen.Alarms, fmt.Sprintf("%s of member %x", alarm.GetAlarm(), alarm.GetMemberId()))
			}
		}
	}
	return seen
}

// version asks a node for the version of the Talos that runs.
func (t *Talos) version(ctx context.Context, node gate.Machine) gate.Version {
	ctx, cancel := context.WithTimeout(client.WithNode(ctx, node.Address.String()), askTimeout)
	defer cancel()
	answer, err := t.client.Version(ctx)
	if err != nil {
		return gate.Version{Err: broken(err)}
	}
	for _, message := range answer.GetMessages() {
		return gate.Version{Runs: message.GetVersion().GetTag()}
	}
	return gate.Version{Err: broken(errors.New("the answer is empty"))}
}

// controllerRanges asks a control plane for the ranges in its controller manager's configuration. That configuration holds no secrets;
// the machine configuration does.
func (t *Talos) controllerRanges(ctx context.Context, node gate.Machine) gate.ControllerRanges {
	ctx, cancel := context.WithTimeout(client.WithNode(ctx, node.Address.String()), askTimeout)
	defer cancel()
	config, err := safe.StateGet[*k8s.ControllerManagerConfig](ctx, t.client.COSI, k8s.NewControllerManagerConfig().Metadata())
	if err != nil {
		reason := broken(err)
		switch status.Code(err) {
		case codes.PermissionDenied, codes.Unimplemented:
			reason.Hopeless, reason.Unknown = false, true // this Talos version does not serve the resource
		}
		return gate.ControllerRanges{Err: reason}
	}
	pods, podErr := prefixes(config.TypedSpec().PodCIDRs)
	services, serviceErr := prefixes(config.TypedSpec().ServiceCIDRs)
	if err := errors.Join(podErr, serviceErr); err != nil {
		return gate.ControllerRanges{Err: broken(err)}
	}
	return gate.ControllerRanges{PodCIDRs: pods, ServiceCIDRs: services}
}

// unsetParameters asks a node for the kernel parameters of its machine configuration that Talos has not set, by their names. Talos shows
// each that it has set, with the value: its own default, if it has one and the kernel refuses the declared one.
func (t *Talos) unsetParameters(ctx context.Context, node gate.Machine) gate.KernelParameters {
	ctx, cancel := context.WithTimeout(client.WithNode(ctx, node.Address.String()), askTimeout)
	defer cancel()
	wanted, err := safe.StateListAll[*runtime.KernelParamSpec](ctx, t.client.COSI)
	if err != nil {
		return gate.KernelParameters{Err: broken(err)}
	}
	if wanted.Len() == 0 {
		return gate.KernelParameters{}
	}
	set, err := safe.StateListAll[*runtime.KernelParamStatus](ctx, t.client.COSI)
	if err != nil {
		return gate.KernelParameters{Err: broken(err)}
	}
	var seen gate.KernelParameters
	for parameter := range wanted.All() {
		id := parameter.Metadata().ID()
		status, known := set.Find(func(s *runtime.KernelParamStatus) bool { return s.Metadata().ID() == id })
		if !known || status.TypedSpec().Current != parameter.TypedSpec().Value {
			seen.Unset = append(seen.Unset, strings.TrimPrefix(id, kernel.Sysctl+"."))
		}
	}
	slices.Sort(seen.Unset)
	return seen
}

// serviceLog returns the last lines of a Talos service's log.
func (t *Talos) serviceLog(ctx context.Context, address netip.Addr, id string, lines int32) (string, error) {
	log := talosapi.Log{ID: id, Namespace: constants.SystemContainerdNamespace, Driver: common.ContainerDriver_CONTAINERD}
	return log.Read(client.WithNode(ctx, address.String()), t.client, lines)
}
