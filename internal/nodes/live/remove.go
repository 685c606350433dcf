package live

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

var _ turn.Remover = (*Cluster)(nil)

// ForfeitLeadership implements turn.Remover. Talos moves the leadership to the first of the other members in etcd's list.
func (c *Cluster) ForfeitLeadership(ctx context.Context, node turn.Node) error {
	_, err := c.talos[node.Address].EtcdForfeitLeadership(ctx, &machine.EtcdForfeitLeadershipRequest{})
	return talosapi.Message(err)
}

// RemoveMember implements turn.Remover.
func (c *Cluster) RemoveMember(ctx context.Context, asked turn.Node, id uint64) error {
	err := c.talos[asked.Address].EtcdRemoveMemberByID(ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: id})
	switch {
	case err == nil:
		return nil
	case client.StatusCode(err) == codes.NotFound:
		return turn.ErrGone
	}
	return talosapi.Message(err)
}

// Shutdown implements turn.Remover. Talos does not cordon and drain the node: that is done.
func (c *Cluster) Shutdown(ctx context.Context, node turn.Node) error {
	return talosapi.Message(c.talos[node.Address].Shutdown(ctx, client.WithShutdownForce(true)))
}

// DeleteNode implements turn.Remover.
func (c *Cluster) DeleteNode(ctx context.Context, name string) error {
	err := c.kube.ask(ctx, func(objects dynamic.Interface) error {
		return objects.Resource(kubeapi.Nodes).Delete(ctx, name, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		return turn.ErrGone
	}
	return err
}
