package bootstrap

import (
	"context"
	"errors"
	"io"
	"path"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/talosapi"
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
	if err == nil && service.State == "" {
		err = errors.New("no etcd service yet")
	}
	seen := etcd{state: service.State, healthy: service.Healthy, message: service.Message}
	if err == nil && !seen.running() {
		seen.data, err = c.hasData(ctx, node)
	}
	return seen, err
}

// hasData reports whether a node has data of etcd: a folder that etcd makes when it starts for the first time. The folder above may be
// missing, or be empty.
func (c clients) hasData(ctx context.Context, node turn.Node) (bool, error) {
	const below = "/member"
	parent, name := path.Split(constants.EtcdDataPath)
	files, err := c.Clients[node.Address].LS(ctx, &machine.ListRequest{Root: parent, Recurse: true, RecursionDepth: 2})
	if err != nil {
		return false, err
	}
	found := false
	for {
		switch file, err := files.Recv(); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return false, err
		case file.GetRelativeName() == name+below:
			found = true
		}
	}
}

func (c clients) bootstrap(ctx context.Context, node turn.Node, recovers bool) error {
	return c.Clients[node.Address].Bootstrap(ctx, &machine.BootstrapRequest{RecoverEtcd: recovers})
}

func (c clients) upload(ctx context.Context, node turn.Node, snapshot io.Reader) error {
	_, err := c.Clients[node.Address].EtcdRecover(ctx, snapshot)
	return err
}
