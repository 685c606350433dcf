package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/bootstrap"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// bootstrap creates etcd on the first control plane, at its own address, once every node has its configuration.
//
// It is a command instead of the Talos provider's resource, because that resource cannot be resumed: if a run is killed between
// the call and the write of the state, the node answers AlreadyExists, and the provider retries that until it fails, on every
// later run. The command takes AlreadyExists as success and changes nothing if etcd runs: it may run again whenever its input
// changes. It runs again when the VM of a control plane was replaced: if all of them were, none has etcd any more. If others have it, a
// replaced one joins them, and the command changes nothing.
func (b *builder) bootstrap(talosconfig pulumi.StringOutput, applies []pulumi.Resource) (pulumi.Resource, error) {
	controlPlanes := addresses(b.ControlPlanes())
	spec := talosconfig.ApplyT(func(text string) (string, error) {
		return probe.Encode(&bootstrap.Spec{Talosconfig: text, Node: controlPlanes[0], ControlPlanes: controlPlanes})
	}).(pulumi.StringOutput)

	return step.New(b.ctx, b.name+"-bootstrap", step.Args{
		Subcommand: "bootstrap", Spec: spec, Timeout: bootstrap.DefaultTimeout,
		Provider: b.args.CommandProvider, DependsOn: applies, ReplaceWith: b.controlPlanes,
	}, b.parent)
}
