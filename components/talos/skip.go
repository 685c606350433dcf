package talos

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
)

// leftOut is in the place of the checksum of a node that is left out.
const leftOut = "left out"

// announceReturns returns the hook that says in a preview what becomes of nodes that are not left out any more.
func (t *turns) announceReturns(ctx *pulumi.Context, name string) (*pulumi.ResourceHook, error) {
	return ctx.RegisterResourceHook(name+"-returning", func(change *pulumi.ResourceHookArgs) error {
		text := t.returning(change)
		if !ctx.DryRun() || text == "" {
			return nil
		}
		return ctx.Log.Info(text, &pulumi.LogArgs{Resource: t.Component})
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
}

// returning says what becomes of the nodes that the last run has left out, and this one does not; "" if there are none. Which versions such
// a node runs, only the node knows.
func (t *turns) returning(change *pulumi.ResourceHookArgs) string {
	sums := component.Plain(change.OldInputs["input"])
	if !sums.IsObject() {
		return ""
	}
	var names []string
	for _, node := range t.Serving(t.Machines()) {
		was := component.Plain(sums.ObjectValue()[resource.PropertyKey(node.Name)])
		if was.IsString() && was.StringValue() == leftOut {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + ": not left out any more, so up makes up for what has changed meanwhile, one node after the other: " +
		"another version of Talos or Kubernetes, the VM and the configuration; a node is drained if it reboots for that, and schedulable once " +
		"it is healthy"
}
