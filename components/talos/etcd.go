package talos

import (
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/internal/probe"
)

// bootstrap creates etcd on the first control plane, at its own address, once every node has its configuration.
//
// It is a command instead of the Talos provider's resource, because that resource cannot be resumed: if a run is killed between
// the call and the write of the state, the node answers AlreadyExists, and the provider retries that until it fails, on every
// later run. The command takes AlreadyExists as success and changes nothing if etcd runs: it may run again whenever its input
// changes. It runs again when a control plane's VM is another one: if all of them are, none has etcd any more, and the command restores the
// declared snapshot, or refuses. That run is an update of the resource, never its replacement, so that the command knows that the cluster
// existed. If others have etcd, a new control plane joins them, and the command changes nothing.
func (b *builder) bootstrap(talosconfig pulumi.StringOutput, applies []pulumi.Resource) (pulumi.Resource, error) {
	controlPlanes := addresses(b.ControlPlanes())
	var incarnations pulumi.StringArray
	for _, vm := range b.controlPlanes {
		incarnations = append(incarnations, incarnation(vm))
	}
	key := b.secrets.MachineSecrets.Secrets().SecretboxEncryptionSecret()
	spec := pulumix.Apply3Err(talosconfig, incarnations.ToStringArrayOutput(), key,
		func(talosconfig string, incarnations []string, key string) (string, error) {
			return probe.Encode(&bootstrap.Spec{
				Talosconfig: talosconfig, Node: controlPlanes[0], ControlPlanes: controlPlanes,
				Machines: incarnations, Recovery: b.recovery(key),
			})
		})
	return step.New(b.ctx, b.name+"-bootstrap", step.Args{
		Subcommand: "bootstrap", Again: "bootstrap --existed",
		Spec: pulumix.Cast[pulumi.StringOutput](spec), Timeout: bootstrap.DefaultTimeout,
		Provider: b.args.CommandProvider, DependsOn: applies,
	}, b.parent)
}

// recovery returns what becomes of a cluster whose control planes are all new.
func (b *builder) recovery(key string) bootstrap.Recovery {
	declared := b.Lifecycle.Snapshots
	recovery := bootstrap.Recovery{Cluster: b.Identity.Name, Folder: declared.Folder, From: declared.RecoverFrom}
	if declared.Restores() {
		recovery.Identity, recovery.Key = b.SnapshotIdentity.Reveal(), key
		for _, node := range b.Machines() {
			recovery.Nodes = append(recovery.Nodes, node.Name)
		}
	}
	return recovery
}

// incarnation returns a text that tells a VM from an earlier one with the same id and name: the UUID that the provider gives it when it
// creates it. It is "" for a VM that was created before the provider stored it.
func incarnation(of *vm.VirtualMachine) pulumi.StringOutput {
	return of.Smbios.ApplyT(func(smbios *vm.VirtualMachineSmbios) string {
		if smbios == nil || smbios.Uuid == nil {
			return ""
		}
		return *smbios.Uuid
	}).(pulumi.StringOutput)
}

// afterEachVM replaces a resource when a machine's VM is another one: it was replaced, or it was lost and is created again. The engine
// replaces nothing with a resource that a refresh has removed from the state. A preview does not know the VM before it exists.
func (b *builder) afterEachVM(of *vm.VirtualMachine) pulumi.ResourceOption {
	replaced := pulumi.ReplaceWith([]pulumi.Resource{of})
	if b.ctx.DryRun() {
		return replaced
	}
	return pulumi.Composite(replaced, pulumi.ReplacementTrigger(incarnation(of)))
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
