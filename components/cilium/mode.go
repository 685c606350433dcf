package cilium

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// RememberMode registers a resource that stores the mode that the cluster was brought up with. With another mode, every later
// preview and run fails before it changes a resource that depends on this one: the machine configurations and the release. After
// a manual switch, replace the resource.
//
// In mode inline, Talos creates Cilium's objects when it bootstraps the cluster, and later the missing ones. It changes
// existing objects only when an operator runs `talosctl upgrade-k8s`.
func RememberMode(ctx *pulumi.Context, name string, mode cluster.CiliumMode, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
	hook, err := ctx.RegisterResourceHook(name+"-mode", refuseSwitch, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	refuses := pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}})
	return pulumi.NewStash(ctx, name+"-mode", &pulumi.StashArgs{Input: pulumi.String(string(mode))},
		pulumi.Composite(opts...), refuses)
}

// refuseSwitch is the hook that runs before the stored mode changes. It refuses the change.
func refuseSwitch(change *pulumi.ResourceHookArgs) error {
	from, to := change.OldInputs["input"], change.NewInputs["input"]
	if !from.IsString() || !to.IsString() || from.StringValue() == to.StringValue() {
		return nil
	}
	return &switchedError{from: cluster.CiliumMode(from.StringValue()), to: cluster.CiliumMode(to.StringValue()), guard: string(change.URN)}
}

// switchedError refuses to switch the mode of a running cluster and names the manual steps.
type switchedError struct {
	from, to cluster.CiliumMode
	guard    string // URN
}

func (e *switchedError) Error() string {
	steps := "run pulumi up --replace '" + e.guard + "', which adopts the objects unchanged"
	if e.to == cluster.CiliumInline {
		steps += ", then kubectl -n " + chart.ReleaseNamespace + " delete secret -l owner=helm,name=" + chart.ReleaseName
	}
	return fmt.Sprintf("cilium.mode: %s, but this cluster was brought up with %s; set it back, or switch by hand: %s (docs/components.md)",
		e.to, e.from, steps)
}
