package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// clients are the Talos APIs of the control planes, each reached at its own address and never through another node.
type clients map[string]*client.Client

// dial prepares the connections; none is made before the first call.
func dial(ctx context.Context, spec Spec) (clients, error) {
	config, err := spec.client()
	if err != nil {
		return nil, err
	}
	// Nodes reboot under us: gRPC's own backoff would have grown to minutes by the time they are back.
	params := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.5, MaxDelay: interval},
		MinConnectTimeout: callTimeout,
	}
	all := clients{}
	for _, node := range spec.ControlPlanes {
		one, err := client.New(ctx, client.WithConfig(config), client.WithEndpoints(node), client.WithGRPCDialOptions(grpc.WithConnectParams(params)))
		if err != nil {
			all.close()
			return nil, fmt.Errorf("%s: %w", node, err)
		}
		all[node] = one
	}
	return all, nil
}

func (c clients) close() {
	for _, one := range c {
		_ = one.Close() // nothing is left to be lost
	}
}

func (c clients) etcd(ctx context.Context, node string) (etcd, error) {
	services, err := c[node].ServiceList(ctx)
	if err != nil {
		return etcd{}, err
	}
	for _, message := range services.GetMessages() {
		for _, service := range message.GetServices() {
			if service.GetId() == "etcd" {
				return etcd{state: service.GetState(), healthy: service.GetHealth().GetHealthy()}, nil
			}
		}
	}
	return etcd{}, errors.New("no etcd service yet")
}

func (c clients) bootstrap(ctx context.Context, node string) error {
	return c[node].Bootstrap(ctx, &machine.BootstrapRequest{})
}
