package talos

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/retire"
	"github.com/slipway-platform/slipway/internal/step"
	"github.com/slipway-platform/slipway/internal/turn"
)

// retire removes the nodes from a running cluster that are not declared any more. It comes before every change of a machine or a
// configuration: a member of etcd whose machine is deleted or dead must not count while others reboot. Pulumi deletes the machines of the
// removed nodes at the end of the run. On a new cluster it only remembers the declared nodes.
//
// A preview shows the change of the declared nodes, and which ones leave in which order; it refuses what the declaration alone forbids.
func (b *builder) retire(talosconfig pulumi.StringOutput, after []pulumi.Resource) (pulumi.Resource, error) {
	nodes := turnNodes(b.Machines())
	spec := talosconfig.ApplyT(func(talosconfig string) (string, error) {
		return probe.Encode(&retire.Spec{
			Cluster: b.Identity.Name, Talosconfig: talosconfig, Nodes: nodes,
			MaxUnavailable: b.Lifecycle.MaxUnavailable, DrainTimeout: probe.Duration(b.Lifecycle.DrainTimeout.Duration),
		})
	}).(pulumi.StringOutput)
	hook, err := b.ctx.RegisterResourceHook(b.name+"-retire", func(change *pulumi.ResourceHookArgs) error {
		plan, err := retirement(change.OldOutputs, nodes)
		if err == nil && len(plan.Leave) > 0 && b.ctx.DryRun() {
			err = b.ctx.Log.Info(plan.String(), nil)
		}
		return err
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	return step.NewChange(b.ctx, b.name+"-retire", step.ChangeArgs{
		Subcommand: "retire", Spec: spec, Record: retire.NewRecord(nodes).String(),
		Timeout:  retire.Longest(b.Lifecycle.DrainTimeout.Duration),
		Provider: b.args.CommandProvider, DependsOn: after,
		Hooks: &pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}},
	}, b.parent)
}

// retirement returns which nodes leave, by the record in the outputs of the last run.
func retirement(outputs resource.PropertyMap, declared []turn.Node) (retire.Plan, error) {
	stdout := plain(outputs["stdout"])
	if !stdout.IsString() {
		return retire.Plan{}, nil
	}
	former, err := retire.ReadRecord(stdout.StringValue())
	if err != nil {
		return retire.Plan{}, fmt.Errorf("the state of the removal of nodes: %w", err)
	}
	return retire.NewPlan(former, declared)
}
