package gitops

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/engines/flux/owner"
)

// sourceResources are the resources of the kinds of sources.
var sourceResources = map[cluster.SourceKind]string{
	cluster.SourceGit: "gitrepositories", cluster.SourceOCI: "ocirepositories", cluster.SourceBucket: "buckets",
}

// RefuseForeignFlux returns an option for a resource that is about to be created. Before that, and at no other time, a Flux in the
// cluster that this stack must not take over is an error. name is the hook's name.
func RefuseForeignFlux(
	ctx *pulumi.Context, name, clusterName string, kubeconfig pulumi.StringInput, git cluster.GitOps,
) (pulumi.ResourceOption, error) {
	source := git.Source()
	declared := owner.Declared{
		Cluster: clusterName, Namespace: cluster.FluxNamespace, Instance: cluster.FluxInstance, Sync: cluster.FluxSync, Version: git.Flux.Version,
		SourceKind: sourceResources[source.Kind], Source: source.URL, Ref: source.Ref, Path: git.Path, Description: string(source.Kind),
	}
	return component.BeforeCreate(ctx, name, kubeconfig, func(ctx context.Context, kubeconfig string) error {
		return owner.Check(ctx, kubeconfig, declared)
	})
}
