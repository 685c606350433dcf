// Package argocd hands a cluster over to Argo CD.
package argocd

import (
	"context"
	"errors"
	"slices"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/components/internal/settings"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/argocd/handover"
	"github.com/slipway-platform/slipway/internal/argocd/owner"
	"github.com/slipway-platform/slipway/internal/argocd/removal"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// typeGitOpsHandover is part of the state: a rename needs Aliases.
const typeGitOpsHandover = "slipway:argocd:GitOpsHandover"

// Settings are values of the cluster that manifests of the GitOps tree can substitute, by UPPER_SNAKE name. They must not contain
// secrets, because they are stored in a ConfigMap.
type Settings = settings.Settings

// GitOpsHandoverArgs are the arguments of a GitOpsHandover.
type GitOpsHandoverArgs struct {
	component.InCluster
	component.Steps

	GitOps   cluster.GitOps  // what Argo CD syncs from; required
	Release  cluster.Service // Argo CD's, of Cluster.ArgoCDService; required
	Settings Settings        // values that the GitOps tree can substitute; required

	Before pulumi.ResourceOption // of RefuseForeign, for the first object; optional
	Access pulumi.StringInput    // changes with the content of the repository's Secret, which Argo CD then tries; nil means none
	VMs    pulumi.Input          // changes with the machines' VMs: after a restore, Argo CD must go on; nil means none
}

// GitOpsHandover installs Argo CD and waits until Argo CD has applied the repository.
type GitOpsHandover struct {
	pulumi.ResourceState

	Report   pulumi.StringOutput `pulumi:"report"`   // the probe's report, one line of JSON (health.Report); it contains no secret
	Revision pulumi.StringOutput `pulumi:"revision"` // the revision that Argo CD has applied, such as refs/heads/main@sha1:…

	leaves []pulumi.Resource
}

// NewGitOpsHandover installs Argo CD and the root Application. It is complete once Argo CD has applied the folder at the newest revision,
// and every Application below the root is synced and healthy. The release does not wait for its pods: the probe waits for the result and
// names what is stuck.
func NewGitOpsHandover(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption) (*GitOpsHandover, error) {
	h := &GitOpsHandover{}
	if err := component.Register(ctx, typeGitOpsHandover, name, args.validate(), nil, h, opts...); err != nil {
		return nil, err
	}
	installed, err := h.install(ctx, name, args)
	if err != nil {
		return nil, err
	}
	removal, err := newRemoval(ctx, name+"-removal", args, installed, h)
	if err != nil {
		return nil, err
	}
	// Pulumi deletes the probe before the removal. If that is interrupted and GitOps comes back, the probe is new, and sees what is missing.
	probe, err := h.verify(ctx, name, args, append(installed, removal))
	if err != nil {
		return nil, err
	}
	h.leaves = []pulumi.Resource{probe}
	h.Report = step.Report(probe)
	h.Revision = h.Report.ApplyT(func(line string) (string, error) {
		report, err := health.ReportFrom(line)
		return report.Revision, err
	}).(pulumi.StringOutput)
	return h, ctx.RegisterResourceOutputs(h, pulumi.Map{"report": h.Report, "revision": h.Revision})
}

// Leaves returns the resource that others wait for: the probe, which ends once Argo CD has applied the repository.
func (h *GitOpsHandover) Leaves() []pulumi.Resource { return slices.Clone(h.leaves) }

// NewNamespace creates Argo CD's namespace, before the Secrets in it. before is the option of RefuseForeign. It stays when Argo CD goes:
// objects of the tree may be in it.
func NewNamespace(
	ctx *pulumi.Context, name, clusterName string, in component.InCluster, before pulumi.ResourceOption,
) (*v1.Namespace, error) {
	return v1.NewNamespace(ctx, name, &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{
			Name:        pulumi.String(cluster.ArgoCDNamespace),
			Annotations: pulumi.StringMap{cluster.AnnotationCluster: pulumi.String(clusterName)},
		},
	}, in.Child(nil, before, pulumi.RetainOnDelete(true)))
}

// RefuseForeign returns an option for a resource that is about to be created. Before that, and at no other time, an engine in the cluster
// that this stack must not take over is an error: a Flux, or an Argo CD of somebody else. name is the hook's name.
func RefuseForeign(ctx *pulumi.Context, name, clusterName string, kubeconfig pulumi.StringInput) (pulumi.ResourceOption, error) {
	inCluster := component.WithKubeconfig(ctx, kubeconfig)
	declared := owner.Declared{Cluster: clusterName, Namespace: cluster.ArgoCDNamespace, Root: cluster.ArgoCDRoot}
	hook, err := ctx.RegisterResourceHook(name, func(*pulumi.ResourceHookArgs) error {
		return inCluster(func(ctx context.Context, kubeconfig string) error { return owner.Check(ctx, kubeconfig, declared) })
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}

// install registers the settings, the release and the root Application, and returns them.
func (h *GitOpsHandover) install(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs) ([]pulumi.Resource, error) {
	before := pulumi.Composite()
	if args.Before != nil {
		before = args.Before
	}
	values, err := settings.New(ctx, name+"-settings", args.Settings, cluster.ArgoCDNamespace, nil, args.Child(h, before))
	if err != nil {
		return nil, err
	}
	service := args.Release
	chartValues, err := service.UserValues.MergedInto(service.Values)
	if err != nil {
		return nil, err
	}
	// The repo-server's pods mount the settings.
	release, err := helm.NewRelease(ctx, name+"-release", &helm.ReleaseArgs{
		Name: service.Name, Namespace: service.Namespace, Chart: service.Chart, Version: service.Version, Repository: service.Repository,
		Values: pulumi.ToMap(chartValues), UserValues: service.UserValues, Kubeconfig: args.Kubeconfig, Renderer: args.KubernetesProvider,
	}, args.Child(h, pulumi.DependsOn([]pulumi.Resource{values})))
	if err != nil {
		return nil, err
	}
	installed := append(release.Leaves(), values)
	root, err := newRoot(ctx, name+"-root", args, args.Child(h, pulumi.DependsOn(installed)))
	if err != nil {
		return nil, err
	}
	return append(installed, root), nil
}

// newRemoval registers the step that runs when the handover leaves the stack, before Argo CD is uninstalled. It removes the Applications:
// with what they have applied under the policy `delete`, and else without. With the cluster's end, it runs nothing.
func newRemoval(
	ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, installed []pulumi.Resource, parent pulumi.Resource,
) (pulumi.Resource, error) {
	spec := args.Spec(func(kubeconfig string) probe.Spec {
		return &removal.Spec{
			Target:    probe.Target{Cluster: args.Name, Kubeconfig: kubeconfig, Timeout: probe.Duration(args.GitOps.Timeout.Duration)},
			Namespace: cluster.ArgoCDNamespace, Root: cluster.ArgoCDRoot, Delete: args.GitOps.DeletionPolicy == cluster.DeletionDelete,
		}
	})
	return step.NewRemoval(ctx, name, step.Run{
		Subcommand: "argocd-removal", Spec: spec, Timeout: args.GitOps.Timeout.Duration, Provider: args.CommandProvider,
		DependsOn: slices.Concat(args.DependsOn, installed), DeletedWith: args.DeletedWith,
	}, parent)
}

// verify registers the probe. It runs on create, and again after a change that Argo CD must apply.
func (h *GitOpsHandover) verify(
	ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, after []pulumi.Resource,
) (*local.Command, error) {
	spec := args.Spec(func(kubeconfig string) probe.Spec {
		return &handover.Spec{
			Target:    args.Target(kubeconfig, args.GitOps.Timeout.Duration),
			Namespace: cluster.ArgoCDNamespace, Root: cluster.ArgoCDRoot,
			URL: args.GitOps.URL, Ref: args.GitOps.Branch, Path: args.GitOps.Path,
		}
	})
	return step.New(ctx, name+"-probe", step.Args{
		Run: step.Run{
			Subcommand: "argocd", Spec: spec, Timeout: args.GitOps.Timeout.Duration,
			Provider: args.CommandProvider, DependsOn: slices.Concat(args.DependsOn, after),
		},
		Triggers: args.triggers(), ReplaceWith: []pulumi.Resource{args.DeletedWith},
	}, h)
}

// triggers returns the values that Argo CD must apply. After a change of the spec alone, a run that failed would not be repeated.
func (a *GitOpsHandoverArgs) triggers() pulumi.Array {
	triggers := pulumi.Array{
		pulumi.String(a.GitOps.Path + " of " + a.GitOps.URL + " at " + a.GitOps.Branch),
		pulumi.String("argo-cd " + a.Release.Version),
		pulumi.String("access by " + a.GitOps.Access()),
	}
	if prefix := a.GitOps.ArgoCD.CredentialsFor; prefix != "" {
		triggers = append(triggers, pulumi.String("credentials for "+prefix))
	}
	if a.GitOps.ArgoCD.HighAvailability {
		triggers = append(triggers, pulumi.String("highly available"))
	}
	if values := a.Release.UserValues.String(); values != "" {
		triggers = append(triggers, pulumi.String("argo-cd's values "+values))
	}
	if a.Access != nil {
		triggers = append(triggers, a.Access)
	}
	if a.VMs != nil {
		triggers = append(triggers, a.VMs)
	}
	return append(triggers, a.Settings.Triggers()...)
}

func (a *GitOpsHandoverArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass GitOpsHandoverArgs")
	}
	problems := []error{a.InCluster.Validate(), a.Steps.Validate(), a.Settings.Validate()}
	if a.GitOps.URL == "" {
		problems = append(problems, errors.New("gitOps.url: is missing; pass the cluster's section"))
	}
	if a.Release.Chart == "" {
		problems = append(problems, errors.New("release: is missing; pass Cluster.ArgoCDService's"))
	}
	return errors.Join(problems...)
}
