package helm

import (
	"context"
	"path"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/helm/leftover"
)

// clearLeftover returns a hook for the release. Before the release is created, and at no other time, the hook removes the record
// that an interrupted run has left of it.
func (a *ReleaseArgs) clearLeftover(ctx *pulumi.Context, name string) (pulumi.ResourceOption, error) {
	if a.Kubeconfig == nil {
		return pulumi.Composite(), nil
	}
	// The hook gets the release's inputs, and the kubeconfig is not one of them. The kubeconfig is known when the hook runs, because
	// the release's provider is configured with it.
	known := make(chan string, 1)
	a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) string {
		known <- kubeconfig
		return ""
	})
	// The last part of an OCI reference is the chart's own name.
	release := leftover.Release{Namespace: a.Namespace, Name: a.Name, Chart: path.Base(a.Chart)}
	hook, err := ctx.RegisterResourceHook(name+"-leftover", func(*pulumi.ResourceHookArgs) error {
		select {
		case kubeconfig := <-known:
			known <- kubeconfig // put it back: the hook runs again before a replacement
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
