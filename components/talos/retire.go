package talos

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/retire"
	"github.com/slipway-platform/slipway/internal/step"
)

// retire removes the nodes from a running cluster that are not declared any more. It comes before every change of a machine or a
// configuration: a member of etcd whose machine is deleted or dead must not count while others reboot. Pulumi deletes the machines of the
// removed nodes at the end of the run, and those of the replaced nodes right afterwards. On a new cluster it only remembers the declared
// nodes.
//
// A preview shows the change of the declared nodes, and which ones leave in which order; it refuses what the declaration alone forbids.
func (b *builder) retire(talosconfig pulumi.StringOutput, after []pulumi.Resource) (pulumi.Resource, error) {
	declared := b.retireSpec()
	spec := talosconfig.ApplyT(func(talosconfig string) (string, error) {
		spec := declared
		spec.Talosconfig = talosconfig
		return probe.Encode(&spec)
	}).(pulumi.StringOutput)
	hook, err := b.ctx.RegisterResourceHook(b.name+"-retire", func(change *pulumi.ResourceHookArgs) error {
		plan, err := retirement(change.OldOutputs, &declared)
		if err == nil && len(plan.Leave) > 0 && b.ctx.DryRun() {
			err = b.ctx.Log.Info(plan.String(), nil)
		}
		if err == nil {
			b.replaced.add(plan.Replaced)
		}
		return err
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	return step.NewChange(b.ctx, b.name+"-retire", step.ChangeArgs{
		Subcommand: "retire", Spec: spec, Record: retire.NewRecord(declared.Nodes).String(),
		Timeout:  retire.Longest(b.Lifecycle.DrainTimeout.Duration, b.Lifecycle.ReturnTimeout.Duration),
		Provider: b.args.CommandProvider, DependsOn: after,
		Hooks: &pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}},
	}, b.parent)
}

// retireSpec returns the spec of the step, without credentials.
func (b *builder) retireSpec() retire.Spec {
	spec := retire.Spec{
		Cluster: b.Identity.Name, Recovers: b.Lifecycle.Snapshots.RecoverFrom != "",
		MaxUnavailable: b.Lifecycle.MaxUnavailable, DrainTimeout: probe.Duration(b.Lifecycle.DrainTimeout.Duration),
		ReturnTimeout: probe.Duration(b.Lifecycle.ReturnTimeout.Duration),
	}
	machines := b.Machines()
	for i, node := range turnNodes(machines) {
		spec.Nodes = append(spec.Nodes, retire.Node{Node: node, Generation: machines[i].Generation})
	}
	return spec
}

// retirement returns which nodes leave, by the record in the outputs of the last run. Whether a cluster is lost that a declared recovery is
// for, only the probe can say.
func retirement(outputs resource.PropertyMap, declared *retire.Spec) (retire.Plan, error) {
	stdout := plain(outputs["stdout"])
	if !stdout.IsString() {
		return retire.Plan{}, nil
	}
	former, err := retire.ReadRecord(stdout.StringValue())
	if err != nil {
		return retire.Plan{}, fmt.Errorf("the state of the removal of nodes: %w", err)
	}
	return retire.NewPlan(former, declared, declared.Recovers)
}

// replacements are the names of the nodes that this run replaces.
type replacements struct {
	mu    sync.Mutex
	names []string
}

func (r *replacements) add(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, names...)
}

func (r *replacements) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.names, name)
}

// protects reports whether a node's VM is protected. That of a control plane is, unless the step before has just made it ready for its
// replacement: Pulumi replaces a protected resource if the program does not protect it any more. The hook of that step knows, so the
// program waits for the step, if the machine has ever been replaced.
func (b *builder) protects(node cluster.Machine) bool {
	if node.Role != cluster.ControlPlane {
		return false
	}
	if node.Generation > 1 {
		// If the step fails, nothing that depends on it is registered.
		_, _ = internals.UnsafeAwaitOutput(b.ctx.Context(), b.retired.URN())
	}
	return !b.replaced.has(node.Name)
}
