package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/slipway-platform/slipway/components/readiness/health"
)

// Talos is a read-only view of the Talos API of a cluster.
type Talos struct{ client *client.Client }

// NewTalos makes a client from the content of a talosconfig and connects to nothing yet.
func NewTalos(ctx context.Context, talosconfig []byte, calls *Calls) (*Talos, error) {
	config, err := clientconfig.FromBytes(talosconfig)
	if err != nil {
		return nil, fmt.Errorf("talosconfig: %w", err)
	}
	c, err := client.New(ctx, client.WithConfig(config), client.WithGRPCDialOptions(
		// The default backs off for up to two minutes; a node that comes up has to be seen at once.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pollEvery, Multiplier: 1, MaxDelay: pollEvery},
			MinConnectTimeout: askTimeout,
		}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			calls.Add()
			return invoke(ctx, method, request, reply, conn, opts...)
		}),
	))
	if err != nil {
		return nil, fmt.Errorf("talosconfig: %w", err)
	}
	return &Talos{client: c}, nil
}

// Close ends the connections.
func (t *Talos) Close() error { return t.client.Close() }

// WatchNode asks a node for its services, and a control plane for its etcd members, until ctx ends.
func (t *Talos) WatchNode(ctx context.Context, node health.Node, publish func(health.TalosNode)) {
	every(ctx, pollEvery, func() {
		seen := t.ask(ctx, node)
		if ctx.Err() == nil {
			publish(seen)
		}
	})
}

func (t *Talos) ask(ctx context.Context, node health.Node) health.TalosNode {
	ctx, cancel := context.WithTimeout(client.WithNode(ctx, node.Address), askTimeout)
	defer cancel()
	seen := health.TalosNode{Asked: true}
	services, err := t.client.ServiceList(ctx)
	if err != nil {
		seen.Err = broken(err)
		return seen
	}
	if len(services.GetMessages()) == 0 {
		seen.Err = broken(errors.New("the list of services is empty"))
		return seen
	}
	seen.Services = map[string]health.Service{}
	for _, info := range services.GetMessages()[0].GetServices() {
		seen.Services[info.GetId()] = service(info)
	}
	if node.Role != health.ControlPlane {
		return seen
	}
	seen.EtcdAsked = true
	members, err := t.client.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil {
		seen.EtcdErr = broken(err)
		return seen
	}
	for _, message := range members.GetMessages() {
		for _, member := range message.GetMembers() {
			seen.Members = append(seen.Members, health.EtcdMember{Name: member.GetHostname(), Learner: member.GetIsLearner()})
		}
	}
	return seen
}

func service(info *machineapi.ServiceInfo) health.Service {
	seen := health.Service{
		State: info.GetState(), Known: info.GetHealth() != nil && !info.GetHealth().GetUnknown(),
		Healthy: info.GetHealth().GetHealthy(), HealthError: info.GetHealth().GetLastMessage(),
	}
	var newest time.Time
	for _, event := range info.GetEvents().GetEvents() {
		if at := event.GetTs().AsTime(); !at.Before(newest) {
			newest, seen.LastEvent = at, event.GetMsg()
		}
	}
	return seen
}
