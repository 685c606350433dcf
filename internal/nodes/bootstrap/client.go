package bootstrap

import (
	"context"
	"errors"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// clients are clients of the control planes' Talos APIs.
type clients struct{ talosapi.Clients }

func dial(ctx context.Context, spec *Spec, options ...grpc.DialOption) (clients, error) {
	config, err := talosapi.ParseConfig(spec.Talosconfig)
	if err != nil {
		return clients{}, err
	}
	all, err := talosapi.Dial(ctx, config, turn.Addresses(spec.ControlPlanes()), options...)
	return clients{all}, err
}

func (c clients) etcd(ctx context.Context, node turn.Node) (etcd, error) {
	service, err := c.Service(ctx, node.Address, "etcd")
	if err != nil && talosapi.InMaintenance(ctx, node.Address.String()) {
		return etcd{}, talosapi.ErrMaintenance
	}
	if err == nil && service.State == "" {
		err = errors.New("no etcd service yet")
	}
	seen := etcd{state: service.State, healthy: service.Healthy, message: service.Message}
	if err == nil && !seen.running() {
		seen.data, err = talosapi.HasEtcdData(ctx, c.Clients[node.Address])
	}
	return seen, err
}

func (c clients) bootstrap(ctx context.Context, node turn.Node, recovers bool) error {
	return c.Clients[node.Address].Bootstrap(ctx, &machine.BootstrapRequest{RecoverEtcd: recovers})
}

func (c clients) reboot(ctx context.Context, node turn.Node) error {
	return c.Clients[node.Address].Reboot(ctx)
}

func (c clients) upload(ctx context.Context, node turn.Node, snapshot io.Reader) error {
	_, err := c.Clients[node.Address].EtcdRecover(ctx, snapshot)
	return err
}
