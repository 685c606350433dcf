package talos

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/internal/probe"
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
		plan, err := retirement(change, &declared, b.ctx.DryRun())
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

// retirement returns which nodes leave, by the record of the last run. Whether a cluster is lost that a declared recovery is for, only the
// probe can say.
func retirement(change *pulumi.ResourceHookArgs, declared *retire.Spec, dryRun bool) (retire.Plan, error) {
	record := formerRecord(change, dryRun)
	if !record.IsString() {
		return retire.Plan{}, nil
	}
	former, err := retire.ReadRecord(record.StringValue())
	if err != nil {
		return retire.Plan{}, fmt.Errorf("the state of the removal of nodes: %w", err)
	}
	return retire.NewPlan(former, declared, declared.Recovers)
}

// formerRecord returns the record of the last run; no text if there is none. It is in the output of that run, which is secret. A preview on
// a copy of the state without secrets (docs/preview.md) takes the one in the inputs: what that run declared, without the nodes that left a
// lost cluster.
func formerRecord(change *pulumi.ResourceHookArgs, dryRun bool) resource.PropertyValue {
	record := plain(change.OldOutputs["stdout"])
	if environment := plain(change.OldInputs["environment"]); dryRun && !record.IsString() && environment.IsObject() {
		return plain(environment.ObjectValue()[step.RecordVariable])
	}
	return record
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

// protects reports whether a node's VM is protected. That of a control plane is, unless this run replaces it: Pulumi replaces a protected
// resource if the program does not protect it any more.
func (b *builder) protects(node cluster.Machine) bool {
	return node.Role == cluster.ControlPlane && !b.isReplaced(node)
}

// isReplaced reports whether this run replaces a node's machine. The hook of the step that removes nodes knows, so the program waits for
// that step, if the machine has ever been replaced.
func (b *builder) isReplaced(node cluster.Machine) bool {
	if node.Generation > 1 {
		b.awaitRetirement()
	}
	return b.replaced.has(node.Name)
}

// awaitRetirement waits until the nodes that leave are removed, or, in a preview, are known. If the step fails, nothing that depends on
// it is registered.
func (b *builder) awaitRetirement() {
	_, _ = internals.UnsafeAwaitOutput(b.ctx.Context(), b.retired.URN())
}
