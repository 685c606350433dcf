package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// bootstrap creates etcd on the first control plane that is not left out, at its own address, once every node has its configuration. It
// asks control planes that are left out, too: one of them may have etcd.
//
// It is a command, because the Talos provider's resource cannot be resumed: if a run is killed between the call and the write of the state,
// the node answers AlreadyExists on every later run, and the provider retries the call until it fails. The command takes AlreadyExists as
// success and changes nothing if etcd runs: it may run again whenever its input changes. It runs again when a control plane gets another
// VM: if all do, none has etcd any more, and the command restores the declared snapshot, or refuses. That run is an update of the resource,
// never its replacement, so the command knows that the cluster existed. If others have etcd, a new control plane joins them, and the
// command changes nothing.
func (r *registrar) bootstrap(
	ctx *pulumi.Context, talosconfig pulumi.StringOutput, secrets generations, nodes []node,
) (pulumi.Resource, error) {
	var incarnations pulumi.StringArray
	for _, node := range nodes {
		if node.Node.Role == cluster.ControlPlane {
			incarnations = append(incarnations, node.Incarnation)
		}
	}
	key := secrets.first().MachineSecrets.Secrets().SecretboxEncryptionSecret()
	spec := pulumix.Apply3Err(talosconfig, incarnations.ToStringArrayOutput(), key,
		func(talosconfig string, incarnations []string, key string) (string, error) {
			spec := bootstrap.Spec{
				Target: turn.TargetOf(r.Cluster, r.ControlPlanes()), Machines: incarnations, Recovery: bootstrap.RecoveryOf(r.Cluster, key),
			}
			spec.Talosconfig = talosconfig
			return probe.Encode(&spec)
		})
	return step.New(ctx, r.NameOf("bootstrap"), step.Args{
		Run: step.Run{
			Subcommand: "bootstrap", Spec: pulumix.Cast[pulumi.StringOutput](spec), Timeout: bootstrap.Longest,
			Provider: r.CommandProvider, DependsOn: appliesOf(nodes),
		},
		Again: "bootstrap --existed",
	}, r.Component)
}

// warnOfRecovery reminds of a declared recovery, which does nothing while etcd exists.
func warnOfRecovery(ctx *pulumi.Context, declared *cluster.Cluster) error {
	from := declared.Lifecycle.Snapshots.RecoverFrom
	if from == "" {
		return nil
	}
	what := "the snapshot " + from + " is restored"
	if from == cluster.RecoverNothing {
		what = "an empty cluster begins, without what was in the former one"
	}
	return ctx.Log.Warn("lifecycle.snapshots.recoverFrom: if no control plane has etcd, "+what+"; otherwise nothing. "+
		"Remove the key once the cluster runs", nil)
}
