package cilium

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// RememberMode registers a resource that holds the mode that the cluster is brought up with. With another mode, every later
// preview and run fails, before anything that depends on the resource is touched: the machines' configuration and the
// release. Replacing the resource makes a switch by hand known.
//
// In mode inline, Talos creates Cilium's objects when it bootstraps the cluster, and later those that are missing; it changes
// what is there only when a person runs `talosctl upgrade-k8s`.
func RememberMode(ctx *pulumi.Context, name string, mode cluster.CiliumMode, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
	hook, err := ctx.RegisterResourceHook(name+"-mode", refuseSwitch, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	refuses := pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}})
	return pulumi.NewStash(ctx, name+"-mode", &pulumi.StashArgs{Input: pulumi.String(string(mode))},
		pulumi.Composite(opts...), refuses)
}

// refuseSwitch runs before the remembered mode changes, which it does for no other reason than a switch.
func refuseSwitch(change *pulumi.ResourceHookArgs) error {
	from, to := change.OldInputs["input"], change.NewInputs["input"]
	if !from.IsString() || !to.IsString() || from.StringValue() == to.StringValue() {
		return nil
	}
	return &switchedError{from: cluster.CiliumMode(from.StringValue()), to: cluster.CiliumMode(to.StringValue()), guard: string(change.URN)}
}

// switchedError refuses to switch a running cluster, and says how it is done.
type switchedError struct {
	from, to cluster.CiliumMode
	guard    string // URN
}

func (e *switchedError) Error() string {
	way := "run pulumi up --replace '" + e.guard + "', which takes the objects over as they are"
	if e.to == cluster.CiliumInline {
		way += ", then kubectl -n " + ReleaseNamespace + " delete secret -l owner=helm,name=" + ReleaseName
	}
	return fmt.Sprintf("cilium.mode: %s, but this cluster was brought up with %s; set it back, or switch by hand: %s (docs/operations.md)",
		e.to, e.from, way)
}
