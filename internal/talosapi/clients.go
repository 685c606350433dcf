// Package talosapi speaks to the Talos APIs of several nodes, each at its own address and never through another node: the
// nodes of a cluster that is coming up, or that reboots, cannot be relied on to reach each other.
package talosapi

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// How patient one is with a node.
const (
	Interval    = time.Second     // between two looks
	CallTimeout = 5 * time.Second // of one call; a node that is rebooting may swallow it
)

// Clients are Talos APIs by address.
type Clients map[string]*client.Client

// Dial prepares the connections with the credentials of the configuration's current context; none is made before the
// first call.
func Dial(ctx context.Context, config *clientconfig.Config, nodes ...string) (Clients, error) {
	// Nodes reboot under us: gRPC's own backoff would have grown to minutes by the time they are back.
	params := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.5, MaxDelay: Interval},
		MinConnectTimeout: CallTimeout,
	}
	all := Clients{}
	for _, node := range nodes {
		one, err := client.New(ctx, client.WithConfig(config), client.WithEndpoints(node), client.WithGRPCDialOptions(grpc.WithConnectParams(params)))
		if err != nil {
			all.Close()
			return nil, fmt.Errorf("%s: %w", node, err)
		}
		all[node] = one
	}
	return all, nil
}

// Close ends the connections.
func (c Clients) Close() {
	for _, one := range c {
		_ = one.Close() // nothing is left to be lost
	}
}

// Service is a Talos service of a node.
type Service struct {
	State   string // such as Running; "" where the node has no such service
	Healthy bool   // by its own check
}

// Service asks a node for one of its services.
func (c Clients) Service(ctx context.Context, node, id string) (Service, error) {
	services, err := c[node].ServiceList(ctx)
	if err != nil {
		return Service{}, err
	}
	for _, message := range services.GetMessages() {
		for _, service := range message.GetServices() {
			if service.GetId() == id {
				return Service{State: service.GetState(), Healthy: service.GetHealth().GetHealthy()}, nil
			}
		}
	}
	return Service{}, nil
}
