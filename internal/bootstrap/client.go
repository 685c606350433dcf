package bootstrap

import (
	"context"
	"errors"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/slipway-platform/slipway/internal/talosapi"
)

// clients are clients of the control planes' Talos APIs.
type clients struct{ talosapi.Clients }

func dial(ctx context.Context, spec *Spec) (clients, error) {
	config, err := spec.clientConfig()
	if err != nil {
		return clients{}, err
	}
	all, err := talosapi.Dial(ctx, config, spec.ControlPlanes...)
	return clients{all}, err
}

func (c clients) etcd(ctx context.Context, node string) (etcd, error) {
	service, err := c.Service(ctx, node, "etcd")
	if err == nil && service.State == "" {
		err = errors.New("no etcd service yet")
	}
	return etcd{state: service.State, healthy: service.Healthy}, err
}

func (c clients) bootstrap(ctx context.Context, node string) error {
	return c.Clients[node].Bootstrap(ctx, &machine.BootstrapRequest{})
}
