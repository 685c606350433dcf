package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"
	"github.com/siderolabs/gen/xslices"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// retire removes the nodes from a running cluster that are not declared any more. It comes before every change of a machine or a
// configuration: a member of etcd whose machine is deleted or dead must not count while others reboot. Pulumi deletes the machines of the
// removed nodes at the end of the run, and those of the replaced nodes right afterwards. On a new cluster it only remembers the declared
// nodes.
//
// A preview shows the change of the declared nodes, and the order in which nodes leave; it refuses what the declaration alone forbids.
func (r *registrar) retire(ctx *pulumi.Context, talosconfig pulumi.StringOutput, after []pulumi.Resource) (*removal, error) {
	declared, removal := retireSpec(r.Cluster), &removal{vms: pulumi.StringMap{}}
	spec := talosconfig.ApplyT(func(talosconfig string) (string, error) {
		spec := declared
		spec.Talosconfig = talosconfig
		return probe.Encode(&spec)
	}).(pulumi.StringOutput)
	hook, err := ctx.RegisterResourceHook(r.NameOf("retire"), func(change *pulumi.ResourceHookArgs) error {
		plan, err := retirement(change, &declared, ctx.DryRun())
		if err == nil && len(plan.Leave) > 0 && ctx.DryRun() {
			err = ctx.Log.Info(plan.String(), nil)
		}
		if err != nil {
			return err
		}
		removal.follows(plan)
		for _, warning := range warnings(plan, r.Cluster) {
			if ctx.DryRun() {
				err = errors.Join(err, ctx.Log.Warn(warning, nil))
			}
		}
		return err
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	removal.run, err = step.NewChange(ctx, r.NameOf("retire"), step.Run{
		Subcommand: "retire", Spec: spec, Timeout: declared.Longest(), Provider: r.CommandProvider, DependsOn: after,
	}, declared.Record().String(), &pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}, r.Component)
	return removal, err
}

// warnings returns what a preview warns of. What OSDs a node has, and whether the cluster runs, the preview does not ask.
func warnings(plan retire.Plan, declared *cluster.Cluster) []string {
	var all []string
	if plan.Moved != nil {
		all = append(all, fmt.Sprintf("up refuses this if the cluster runs: %v", plan.Moved))
	}
	if names := plan.MayHaveOSDs(turn.NodesOf(declared.StorageMachines())); len(names) > 0 {
		all = append(all, fmt.Sprintf("%s may have OSDs of Ceph, on disks with use: osd, which go with the machine; %s",
			strings.Join(names, ", "), retire.EmptyFirst))
	}
	return all
}

// retireSpec returns the spec of the step, without the talosconfig.
func retireSpec(declared *cluster.Cluster) retire.Spec {
	spec := retire.Spec{
		Declared:  turn.DeclaredOf(declared, declared.Machines()),
		Identity:  identityOf(declared),
		Snapshots: snapshot.PlaceOf(declared), Recovers: declared.Lifecycle.Snapshots.RecoverFrom != "",
	}
	for i, machine := range declared.Machines() {
		node := &spec.Nodes[i]
		node.Generation, node.VM, node.DiskEncryption = machine.Generation, machine.VMID, machine.DiskEncryption
		node.Address6, node.MAC = machine.Address6, machine.MAC
		if machine.Generation > 1 {
			spec.Kubernetes = declared.Kubernetes.Version
		}
	}
	return spec
}

func identityOf(declared *cluster.Cluster) retire.Identity {
	return retire.Identity{
		Name: declared.Identity.Name, ID: declared.Identity.ID, VIP: declared.Network.VIP, Volumes: declared.Storage.ClusterID(),
	}
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
// a copy of the state without secrets (docs/preview.md) takes the record in the inputs: what that run declared, without the nodes that left
// a lost cluster.
func formerRecord(change *pulumi.ResourceHookArgs, dryRun bool) resource.PropertyValue {
	record := component.Plain(change.OldOutputs["stdout"])
	if environment := component.Plain(change.OldInputs["environment"]); dryRun && !record.IsString() && environment.IsObject() {
		return component.Plain(environment.ObjectValue()[step.RecordVariable])
	}
	return record
}

// removal is the step that removes nodes, and knows which of them this run replaces.
type removal struct {
	run pulumi.Resource
	vms pulumi.StringMap // texts that tell the machines from earlier ones, by the names of their nodes

	mu       sync.Mutex
	replaced []string // names of nodes
	added    []string // names of nodes that the last run did not know
}

func (r *removal) follows(plan retire.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replaced, r.added = append(r.replaced, plan.Replaced...), append(r.added, plan.New...)
}

// tell keeps the text that tells a machine from an earlier one. It is another one if a node is declared again that an earlier run has
// removed without coming to the deletion of its machine, which is off: nothing else of the machine has changed, and no gate would miss it.
func (r *removal) tell(ctx *pulumi.Context, of machines.Machine) {
	r.vms[of.Node.Name] = of.Incarnation.ApplyT(func(text string) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.Contains(r.added, of.Node.Name) || of.New() {
			return text, nil
		}
		return text + " again", ctx.Log.Warn(fmt.Sprintf("%s is new, and its machine is not: if an earlier run has removed the node, raise its "+
			"generation, or switch the machine of a worker on; the gates wait for it", of.Node.Name), nil)
	}).(pulumi.StringOutput)
}

// protects reports whether a node's machine is protected: a control plane's is, unless this run replaces it. Pulumi replaces a
// protected resource if the program does not protect it any more.
func (r *removal) protects(ctx *pulumi.Context, node cluster.Machine) bool {
	return node.Role == cluster.ControlPlane && !r.isReplaced(ctx, node)
}

// isReplaced reports whether this run replaces a node's machine. The hook of the step knows, so the program waits for the step, if the
// machine has ever been replaced. If the step fails, nothing that depends on it is registered.
func (r *removal) isReplaced(ctx *pulumi.Context, node cluster.Machine) bool {
	if node.Generation > 1 {
		_, _ = internals.UnsafeAwaitOutput(ctx.Context(), r.run.URN())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.replaced, node.Name)
}

// rejoining returns the machines that this run replaces, and those that an earlier run has replaced and left without a configuration. They
// join again before any other node is changed: until then the cluster lacks them. Nothing joins a lost cluster before it is restored: if a
// recovery is declared, an API server must answer.
func (r *removal) rejoining(ctx *pulumi.Context, declared *cluster.Cluster, turns *turns) []cluster.Machine {
	return xslices.Filter(declared.Machines(), func(node cluster.Machine) bool {
		if r.isReplaced(ctx, node) {
			return declared.Lifecycle.Snapshots.RecoverFrom == "" || !ctx.DryRun() && turns.served(ctx.Context())
		}
		return node.Generation > 1 && !ctx.DryRun() && turns.lacks(ctx.Context(), node)
	})
}

// lacks reports whether a machine that was replaced has no configuration, while the cluster could take it: the run that replaced the
// machine was ended before the node joined.
func (t *turns) lacks(ctx context.Context, node cluster.Machine) bool {
	return !t.Lifecycle.Skip.Has(node.Name) && t.bare(ctx, node) && t.served(ctx)
}

// served reports whether the cluster runs with the declared minor release of Kubernetes or a later one.
func (t *turns) served(ctx context.Context) bool {
	if t.connect(ctx) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return slices.ContainsFunc(turn.ControlPlanes(t.declared.Nodes), func(other turn.Node) bool {
		version, err := t.cluster.Version(ctx, other)
		return err == nil && semver.Compare(semver.MajorMinor(version), semver.MajorMinor(t.Kubernetes.Version)) >= 0
	})
}
