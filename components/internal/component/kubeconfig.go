package component

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// WithKubeconfig returns a function that hooks of resources in the cluster call others with, which need the kubeconfig.
//
// A hook gets the inputs of its resource, without the kubeconfig. The kubeconfig is known when the hook runs, because the resource's
// provider is configured with it.
func WithKubeconfig(
	ctx *pulumi.Context, kubeconfig pulumi.StringInput,
) func(run func(ctx context.Context, kubeconfig string) error) error {
	known := make(chan string, 1)
	kubeconfig.ToStringOutput().ApplyT(func(text string) string {
		known <- text
		return ""
	})
	return func(run func(ctx context.Context, kubeconfig string) error) error {
		select {
		case text := <-known:
			known <- text // put it back: another hook needs it, too
			return run(ctx.Context(), text)
		case <-ctx.Context().Done():
			return context.Cause(ctx.Context())
		}
	}
}

// BeforeCreate returns an option for a resource in the cluster that is about to be created. Before that, and at no other time, check runs,
// whose error is the resource's. name is the hook's name.
func BeforeCreate(
	ctx *pulumi.Context, name string, kubeconfig pulumi.StringInput, check func(ctx context.Context, kubeconfig string) error,
) (pulumi.ResourceOption, error) {
	inCluster := WithKubeconfig(ctx, kubeconfig)
	hook, err := ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error { return inCluster(check) }, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}
