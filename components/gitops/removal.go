package gitops

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/flux/prune"
	"github.com/slipway-platform/slipway/internal/probe"
)

// newRemoval registers the step that runs when the handover leaves the stack, before Flux is uninstalled: with the policy `delete`, Flux
// removes everything that it has applied. The resource exists with the policy `orphan`, too: otherwise, a change from `delete` to `orphan`
// would delete the resource, and so remove everything at once. With the cluster's end, it runs nothing.
func newRemoval(
	ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, instance, parent pulumi.Resource,
) (pulumi.Resource, error) {
	subcommand := ""
	if args.GitOps.DeletionPolicy == cluster.DeletionDelete {
		subcommand = "prune"
	}
	spec := args.Spec(func(kubeconfig string) probe.Spec {
		return &prune.Spec{
			Target:    probe.Target{Cluster: args.Name, Kubeconfig: kubeconfig, Timeout: probe.Duration(args.GitOps.Timeout.Duration)},
			Namespace: cluster.FluxNamespace, Instance: cluster.FluxInstance, Kustomization: cluster.FluxSync,
		}
	})
	return step.NewRemoval(ctx, name, step.Run{
		Subcommand: subcommand, Spec: spec, Timeout: args.GitOps.Timeout.Duration, Provider: args.CommandProvider,
		DependsOn: append(slices.Clone(args.DependsOn), instance), DeletedWith: args.DeletedWith,
	}, parent)
}
