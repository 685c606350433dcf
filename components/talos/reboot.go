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
		return t.updates(update, update.Grows(change))
	}, append(update.Before, announce)...)
}

// updates plans an update for which the hypervisor may reboot a machine, and after which these disks are bigger.
func (t *turns) updates(update machines.Update, grows []string) plan {
	return func(ctx context.Context, on access, node turn.Node) (turn.Change, bool, error) {
		if update.IsStopped(ctx) {
			t.say(node.Name + ": takes no turn, because its VM is stopped")
			return turn.Change{}, false, nil
		}
		change := turn.Change{Node: node, Drains: true} // whether it rebooted is over when the provider has ended
		if len(grows) > 0 {
			change.Reboots, change.After = true, t.rebootsFor(on, node, grows)
		}
		return change, true, nil
	}
}

// rebootsFor reboots a node for its bigger disks, unless the provider has rebooted the VM: Talos lets partitions grow when it boots.
func (t *turns) rebootsFor(on access, node turn.Node, disks []string) func(ctx context.Context, boot string) error {
	return func(ctx context.Context, boot string) error {
		var seen turn.Machine
		err := t.engine.Until(ctx, t.Lifecycle.ReturnTimeout.Duration, 0, node.Name+"'s answer", func(ctx context.Context) (string, error) {
			var err error
			if seen, err = on.Machine(ctx, node); err != nil {
				return "its Talos API does not answer: " + err.Error(), nil
			}
			return "", nil
		})
		if err != nil || seen.Boot != boot {
			return err
		}
		t.say(fmt.Sprintf("%s: reboots, because Talos uses the space of a bigger disk (%s) from its next boot on", node.Name,
			strings.Join(disks, ", ")))
		return on.Reboot(ctx, node)
	}
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
