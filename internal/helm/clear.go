package helm

import (
	"context"
	"path"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/helm/leftover"
)

// clearLeftover binds a hook to the release that looks, before the release is created and at no other time, for what an
// interrupted run has left of it.
func (a *ReleaseArgs) clearLeftover(ctx *pulumi.Context, name string) (pulumi.ResourceOption, error) {
	if a.Kubeconfig == nil {
		return pulumi.Composite(), nil
	}
	// The hook is called with the release's inputs, of which the kubeconfig is none. By then it is known, for the release's
	// provider is made of it.
	known := make(chan string, 1)
	a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) string {
		known <- kubeconfig
		return ""
	})
	// The chart's own name is the last part of an OCI reference.
	release := leftover.Release{Namespace: a.Namespace, Name: a.Name, Chart: path.Base(a.Chart)}
	hook, err := ctx.RegisterResourceHook(name+"-leftover", func(*pulumi.ResourceHookArgs) error {
		select {
		case kubeconfig := <-known:
			known <- kubeconfig // a replacement is a creation, too
			return leftover.Clear(ctx.Context(), kubeconfig, release)
		case <-ctx.Context().Done():
			return context.Cause(ctx.Context())
		}
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}
