package gitops

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/flux/owner"
)

// sourceResources are the resources of the kinds of sources.
var sourceResources = map[cluster.SourceKind]string{
	cluster.SourceGit: "gitrepositories", cluster.SourceOCI: "ocirepositories", cluster.SourceBucket: "buckets",
}

// RefuseForeignFlux returns an option for a resource that is about to be created. Before that, and at no other time, a Flux in the
// cluster that this stack must not take over is an error. name is that of the hook.
func RefuseForeignFlux(
	ctx *pulumi.Context, name, clusterName string, kubeconfig pulumi.StringInput, git cluster.GitOps,
) (pulumi.ResourceOption, error) {
	// The kubeconfig is known when the hook runs, because the resource's provider is configured with it.
	known := make(chan string, 1)
	kubeconfig.ToStringOutput().ApplyT(func(text string) string {
		known <- text
		return ""
	})
	source := git.Source()
	declared := owner.Declared{
		Cluster: clusterName, Namespace: cluster.FluxNamespace, Instance: instanceName, Sync: syncName, Version: git.Flux.Version,
		SourceKind: sourceResources[source.Kind], Source: source.URL, Ref: source.Ref, Path: git.Path, Description: string(source.Kind),
	}
	hook, err := ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error {
		select {
		case text := <-known:
			known <- text // put it back: the hook runs again before a replacement
			return owner.Check(ctx.Context(), text, declared)
		case <-ctx.Context().Done():
			return context.Cause(ctx.Context())
		}
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}
