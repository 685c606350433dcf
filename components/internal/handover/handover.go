// Package handover registers what the handovers to both GitOps engines have in common: the probe that waits until the engine has applied
// the repository, and the run that removes what it has applied.
package handover

import (
	"slices"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/settings"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// GitOpsHandover installs an engine and waits until the engine has applied the repository.
type GitOpsHandover struct {
	pulumi.ResourceState

	Report   pulumi.StringOutput `pulumi:"report"`   // the probe's report, one line of JSON (health.Report); it contains no secret
	Revision pulumi.StringOutput `pulumi:"revision"` // the revision that the engine has applied, such as refs/heads/main@sha1:…

	leaves []pulumi.Resource
}

// Leaves returns the resource that others wait for: the probe, which ends once the engine has applied the repository. Without a handover,
// there is none.
func (h *GitOpsHandover) Leaves() []pulumi.Resource {
	if h == nil {
		return nil
	}
	return slices.Clone(h.leaves)
}

// Args are the arguments of New. All are required but VMs.
type Args struct {
	component.InCluster
	component.Steps
	GitOps   cluster.GitOps
	Settings settings.Settings
	VMs      pulumi.Input // changes with the machines' VMs: after a restore, the engine must go on; nil means none

	// Install registers the engine below the handover, and returns what the probe and the removal come after.
	Install func(parent pulumi.Resource) ([]pulumi.Resource, error)

	// Verify is the subcommand that waits until the engine has applied the repository. It runs on create, and again after a change of the
	// triggers, of the VMs and of the settings. After a change of the spec alone, a run that failed would not be repeated.
	Verify     string
	VerifySpec func(target health.Target) probe.Spec
	Triggers   pulumi.Array

	// Remove is the subcommand that runs when the handover leaves the stack, before the engine is uninstalled; "" runs none. The resource
	// exists even then: otherwise, a change to "" would delete the resource, and so remove everything at once. With the cluster's end, it
	// runs nothing.
	Remove     string
	RemoveSpec func(target probe.Target) probe.Spec
}

// New registers a handover under its type token.
func New(ctx *pulumi.Context, token, name string, args *Args, opts ...pulumi.ResourceOption) (*GitOpsHandover, error) {
	h := &GitOpsHandover{}
	if err := component.Register(ctx, token, name, nil, nil, h, opts...); err != nil {
		return nil, err
	}
	installed, err := args.Install(h)
	if err != nil {
		return nil, err
	}
	after := slices.Concat(args.DependsOn, installed)
	timeout := args.GitOps.Timeout.Duration
	removal, err := step.NewRemoval(ctx, name+"-removal", step.Run{
		Subcommand: args.Remove, Timeout: timeout, Provider: args.CommandProvider, DependsOn: after, DeletedWith: args.DeletedWith,
		Spec: args.Spec(func(kubeconfig string) probe.Spec {
			return args.RemoveSpec(probe.Target{Cluster: args.Name, Kubeconfig: kubeconfig, Timeout: probe.Duration(timeout)})
		}),
	}, h)
	if err != nil {
		return nil, err
	}
	// Pulumi deletes the probe before the removal. If that is interrupted and GitOps comes back, the probe is new, and sees what is missing.
	verify, err := args.verify(ctx, name+"-probe", append(after, removal), h)
	if err != nil {
		return nil, err
	}
	h.leaves = []pulumi.Resource{verify}
	h.Report = step.Report(verify)
	h.Revision = h.Report.ApplyT(func(line string) (string, error) {
		report, err := health.ReportFrom(line)
		return report.Revision, err
	}).(pulumi.StringOutput)
	return h, ctx.RegisterResourceOutputs(h, pulumi.Map{"report": h.Report, "revision": h.Revision})
}

func (a *Args) verify(ctx *pulumi.Context, name string, after []pulumi.Resource, parent pulumi.Resource) (*local.Command, error) {
	timeout, triggers := a.GitOps.Timeout.Duration, a.Triggers
	if a.VMs != nil {
		triggers = append(triggers, a.VMs)
	}
	return step.New(ctx, name, step.Args{
		Run: step.Run{
			Subcommand: a.Verify, Timeout: timeout, Provider: a.CommandProvider, DependsOn: after,
			Spec: a.Spec(func(kubeconfig string) probe.Spec { return a.VerifySpec(a.Target(kubeconfig, timeout)) }),
		},
		Triggers: append(triggers, a.Settings.Triggers()...), ReplaceWith: []pulumi.Resource{a.DeletedWith},
	}, parent)
}
