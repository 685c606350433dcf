package cilium

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Mode is how Cilium gets into the cluster. A running cluster stays with its mode until it is switched by hand.
type Mode string

// The modes: as a Helm release, which this program keeps as declared, or in the control planes' machine configuration.
// From that, Talos creates the objects when it bootstraps the cluster, and later those that are missing; it changes what is
// there only when a person runs `talosctl upgrade-k8s`.
const (
	ModeHelm   Mode = "helm"
	ModeInline Mode = "inline"
)

// RememberMode has the stack remember the mode that its cluster is brought up with. In another one every later preview and
// run fails, before whatever depends on the resource it returns is touched: the machines' configuration and the release.
// To replace that resource is how a switch by hand is made known.
func RememberMode(ctx *pulumi.Context, name string, mode Mode, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
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
	return &switchedError{from: Mode(from.StringValue()), to: Mode(to.StringValue()), guard: string(change.URN)}
}

// switchedError refuses to switch a running cluster, and says how it is done.
type switchedError struct {
	from, to Mode
	guard    string // URN
}

func (e *switchedError) Error() string {
	way := "run pulumi up --replace '" + e.guard + "', which takes the objects over as they are"
	if e.to == ModeInline {
		way += ", then kubectl -n " + ReleaseNamespace + " delete secret -l owner=helm,name=" + ReleaseName
	}
	return fmt.Sprintf("cilium.mode: %s, but this cluster was brought up with %s; set it back, or switch by hand: %s (docs/operations.md)",
		e.to, e.from, way)
}
