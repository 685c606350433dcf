// Package live reads and changes a real cluster for package turn: machines by their Talos APIs, each at its own address, and nodes and pods
// by the Kubernetes API of any control plane that answers. It needs the Talos credentials only: a control plane hands out the kubeconfig.
package live

import (
	"context"
	"errors"
	"io"
	"net/netip"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Cluster implements turn.Cluster.
type Cluster struct {
	talos   talosapi.Clients
	options []grpc.DialOption
	kube    *kube
}

// Open parses a talosconfig, and makes the clients of a cluster's nodes as Dial does.
func Open(ctx context.Context, talosconfig string, nodes []turn.Node, options ...grpc.DialOption) (*Cluster, error) {
	config, err := talosapi.ParseConfig(talosconfig)
	if err != nil {
		return nil, err
	}
	return Dial(ctx, config, nodes, options...)
}

// Dial makes the clients of a cluster's nodes, with the credentials of the configuration's current context. It does not connect.
func Dial(ctx context.Context, config *clientconfig.Config, nodes []turn.Node, options ...grpc.DialOption) (*Cluster, error) {
	talos, err := talosapi.Dial(ctx, config, turn.Addresses(nodes), options...)
	if err != nil {
		return nil, err
	}
	return &Cluster{talos: talos, options: options, kube: &kube{talos: talos, addresses: turn.Addresses(turn.ControlPlanes(nodes))}}, nil
}

// Close closes the connections to the Talos APIs.
func (c *Cluster) Close() { c.talos.Close() }

// Talos returns the client of a node's Talos API.
func (c *Cluster) Talos(node turn.Node) *client.Client { return c.talos[node.Address] }

// Answers reports whether a machine's Talos API takes connections, with a configuration or without.
func (c *Cluster) Answers(ctx context.Context, node turn.Node) bool {
	return talosapi.Knock(ctx, node.Address.String()) == nil
}

// HoldsEtcd reports whether a machine has data of etcd.
func (c *Cluster) HoldsEtcd(ctx context.Context, node turn.Node) (bool, error) {
	has, err := talosapi.HasEtcdData(ctx, c.talos[node.Address])
	return has, talosapi.Message(err)
}

// Machine implements turn.Cluster.
func (c *Cluster) Machine(ctx context.Context, node turn.Node) (turn.Machine, error) {
	seen, err := c.machine(ctx, node.Address)
	if err != nil {
		return turn.Machine{}, talosapi.Message(err)
	}
	return seen, nil
}

func (c *Cluster) machine(ctx context.Context, address netip.Addr) (turn.Machine, error) {
	talos := c.talos[address]
	version, err := talos.Version(ctx)
	if err != nil {
		return turn.Machine{}, err
	}
	seen := turn.Machine{Unmet: map[string]string{}}
	for _, message := range version.GetMessages() {
		seen.Version = message.GetVersion().GetTag()
	}
	if seen.Boot, err = c.talos.Boot(ctx, address); err != nil {
		return turn.Machine{}, err
	}
	stage, err := safe.StateGetByID[*runtime.MachineStatus](ctx, talos.COSI, runtime.MachineStatusID)
	if err != nil {
		return turn.Machine{}, err
	}
	seen.Stage = stage.TypedSpec().Stage.String()
	for _, condition := range stage.TypedSpec().Status.UnmetConditions {
		seen.Unmet[condition.Name] = condition.Reason
	}
	if seen.Services, err = talosapi.Services(ctx, talos); err != nil {
		return turn.Machine{}, err
	}
	return seen, nil
}

// Members implements turn.Cluster.
func (c *Cluster) Members(ctx context.Context, asked turn.Node) ([]talosapi.Member, error) {
	members, err := talosapi.Members(ctx, c.talos[asked.Address])
	if err == nil && len(members) == 0 {
		err = errors.New("etcd has no members")
	}
	return members, talosapi.Message(err)
}

// EtcdSnapshot implements snapshot.Source. It asks no learner, and no member that is cut off from the others.
func (c *Cluster) EtcdSnapshot(ctx context.Context, node turn.Node) (io.ReadCloser, error) {
	asking, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	if err := talosapi.Follows(asking, c.talos[node.Address]); err != nil {
		return nil, talosapi.Message(err)
	}
	data, err := c.talos[node.Address].EtcdSnapshot(ctx, &machine.EtcdSnapshotRequest{})
	return data, talosapi.Message(err)
}
