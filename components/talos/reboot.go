package talos

import (
	"context"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/vmchange"
)

// announceReboot returns the hook that says in a preview which VM the provider reboots, why, and how.
func (b *builder) announceReboot(node cluster.Machine) (*pulumi.ResourceHook, error) {
	return b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-reboot", func(change *pulumi.ResourceHookArgs) error {
		changed := reboots(change)
		if !b.ctx.DryRun() || len(changed) == 0 {
			return nil
		}
		return b.ctx.Log.Info(b.announcement(node, changed), &pulumi.LogArgs{Resource: b.parent})
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
}

// announcement says how a VM is rebooted.
func (b *builder) announcement(node cluster.Machine, changed []string) string {
	how := "after its turn has come it is cordoned, drained, changed and uncordoned once it is back"
	order := "control planes go first, one at a time"
	switch {
	case node.Role == cluster.Worker:
		order = fmt.Sprintf("after the control planes, %d at a time", max(b.Lifecycle.MaxUnavailable, 1))
	case len(b.ControlPlanes()) == 1:
		order = "it is the only control plane, so the Kubernetes API is away meanwhile"
	}
	return fmt.Sprintf("%s reboots for its changed %s: %s (%s)", node.Name, strings.Join(changed, ", "), how, order)
}

// rebootHooks makes the provider reboot a VM in its node's turn. first are hooks that come before.
func (b *builder) rebootHooks(node cluster.Machine, first ...*pulumi.ResourceHook) (*pulumi.ResourceHookBinding, error) {
	api, id, turns := b.api(), node.VMID, b.turns
	return b.inTurn(b.name+"-"+node.Name+"-vm", node, func(change *pulumi.ResourceHookArgs) plan {
		if len(reboots(change)) == 0 {
			return nil
		}
		return func(ctx context.Context, _ access, node turn.Node) (turn.Change, bool) {
			if stopped, err := reclaim.Stopped(ctx, api, id); err == nil && stopped {
				turns.say(node.Name + ": takes no turn, because its VM is stopped")
				return turn.Change{}, false
			}
			return turn.Change{Node: node, Drains: true}, true // whether it rebooted is over when the provider has ended
		}
	}, first...)
}

// reboots returns the inputs whose change may reboot the VM.
func reboots(change *pulumi.ResourceHookArgs) []string {
	return vmchange.Rebooting(mappable(change.OldInputs), mappable(change.NewInputs))
}

// mappable returns properties as plain values, without secrets and outputs around them.
func mappable(properties resource.PropertyMap) map[string]any {
	return properties.MapRepl(nil, unwrap)
}

func unwrap(value resource.PropertyValue) (any, bool) {
	if value.IsSecret() || value.IsOutput() {
		return plain(value).MapRepl(nil, unwrap), true
	}
	return nil, false
}
