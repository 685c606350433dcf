package helm

import (
	"context"
	"fmt"
	"path"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/helm/leftover"
)

// hooks returns the hooks of the release:
//   - before it is created, the record is removed that an interrupted run has left of it.
//   - before it is updated, too. If the release is Pulumi's, the engine must have let go of it.
//   - in a preview of an update that changes the owner, what the new owner would change is shown. From one engine to the other, it is
//     refused: Helm would upgrade to what Pulumi installed last.
func (a *ReleaseArgs) hooks(ctx *pulumi.Context, name string) (pulumi.ResourceOption, error) {
	if a.Kubeconfig == nil {
		return pulumi.Composite(), nil
	}
	inCluster := component.WithKubeconfig(ctx, a.Kubeconfig) // in a preview it may be unknown, and then no hook sends anything
	// The last part of an OCI reference is the chart's own name.
	release := leftover.Release{Namespace: a.Service.Namespace, Name: a.Service.Name, Chart: path.Base(a.Service.Chart)}
	clear, err := ctx.RegisterResourceHook(name+"-leftover", func(*pulumi.ResourceHookArgs) error {
		return inCluster(func(ctx context.Context, kubeconfig string) error { return leftover.Clear(ctx, kubeconfig, release) })
	}, nil)
	if err != nil {
		return nil, err
	}
	update, err := ctx.RegisterResourceHook(name+"-unlock", func(*pulumi.ResourceHookArgs) error {
		return inCluster(func(ctx context.Context, kubeconfig string) error {
			if !a.ofEngine() {
				for _, owner := range []cluster.Owner{cluster.OwnerFlux, cluster.OwnerArgoCD} {
					if err := leftover.OwnerOf(a.Service.Name, owner).Released(ctx, kubeconfig); err != nil {
						return err
					}
				}
			}
			return leftover.Unlock(ctx, kubeconfig, release)
		})
	}, nil)
	if err != nil {
		return nil, err
	}
	compare, err := ctx.RegisterResourceHook(name+"-owner", func(change *pulumi.ResourceHookArgs) error {
		was, is := text(change.OldInputs["description"]), text(change.NewInputs["description"])
		if was != "" && is != "" && was != is {
			return fmt.Errorf("%s: is %s; write owner: pulumi and run up before it is %s", release, was, is)
		}
		if ctx.DryRun() {
			a.showDifference(ctx, change)
		}
		return nil
	}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{
		BeforeCreate: []*pulumi.ResourceHook{clear}, BeforeUpdate: []*pulumi.ResourceHook{compare, update},
	}), nil
}

// tries returns the hook after an update of the Secret with the values that Slipway sets: it waits until the engine has tried them. What
// looks at the pods afterwards would otherwise see the former ones. If the engine does not try them, the run goes on with a warning: it may
// mend the engine.
func (a *ReleaseArgs) tries(ctx *pulumi.Context, name string) (pulumi.ResourceOption, error) {
	if a.Kubeconfig == nil {
		return pulumi.Composite(), nil
	}
	inCluster, owner := component.WithKubeconfig(ctx, a.Kubeconfig), leftover.OwnerOf(a.Service.Name, a.Service.Owner)
	hook, err := ctx.RegisterResourceHook(name+"-tried", func(*pulumi.ResourceHookArgs) error {
		err := inCluster(func(ctx context.Context, kubeconfig string) error { return owner.Tried(ctx, kubeconfig) })
		if err != nil {
			_ = ctx.Log.Warn(fmt.Sprintf("what follows may see the pods before the change: %v; %s", err, owner.Command()), nil)
		}
		return nil
	}, nil)
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{AfterUpdate: []*pulumi.ResourceHook{hook}}), err
}
