package talos

import (
	"context"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Hooks returns the hooks with which the hypervisor reboots a machine in its node's turn. In a preview, they say which machine is rebooted,
// why, and how.
func (t *turns) Hooks(ctx *pulumi.Context, update machines.Update) (*pulumi.ResourceHookBinding, error) {
	node := update.Node
	announce, err := ctx.RegisterResourceHook(t.NameOf(node.Name, "reboot"), func(change *pulumi.ResourceHookArgs) error {
		changed := update.Reboots(change)
		if !ctx.DryRun() || len(changed) == 0 {
			return nil
		}
		return ctx.Log.Info(announcement(t.Cluster, node, changed), &pulumi.LogArgs{Resource: t.Component})
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	return t.inTurn(ctx, update.Resource, node, func(change *pulumi.ResourceHookArgs) plan {
		if len(update.Reboots(change)) == 0 {
			return nil
		}
		return func(ctx context.Context, _ access, node turn.Node) (turn.Change, bool, error) {
			if update.IsStopped(ctx) {
				t.say(node.Name + ": takes no turn, because its VM is stopped")
				return turn.Change{}, false, nil
			}
			return turn.Change{Node: node, Drains: true}, true, nil // whether it rebooted is over when the provider has ended
		}
	}, append(update.Before, announce)...)
}

// announcement says how a machine is rebooted.
func announcement(c *cluster.Cluster, node cluster.Machine, changed []string) string {
	how := "after its turn has come it is cordoned, drained, changed and uncordoned once it is back"
	order := "control planes go first, one at a time"
	switch {
	case node.Role == cluster.Worker:
		order = fmt.Sprintf("after the control planes, %d at a time", c.Lifecycle.MaxUnavailable)
	case len(c.ControlPlanes()) == 1:
		order = "it is the only control plane, so the Kubernetes API is away meanwhile"
	}
	return fmt.Sprintf("%s reboots for its changed %s: %s (%s)", node.Name, strings.Join(changed, ", "), how, order)
}
