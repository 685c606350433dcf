// Package argocd hands a cluster over to Argo CD.
package argocd

import (
	"context"
	"errors"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handover"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/components/internal/settings"
	verify "github.com/slipway-platform/slipway/internal/engines/argocd/handover"
	"github.com/slipway-platform/slipway/internal/engines/argocd/owner"
	"github.com/slipway-platform/slipway/internal/engines/argocd/removal"
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
	Git      *cluster.Git    // what the repository declares of this release; nil means nothing
	Settings Settings        // values that the GitOps tree can substitute; required

	Before pulumi.ResourceOption // of RefuseForeign, for the first object; optional
	Access pulumi.StringInput    // changes with the content of the repository's Secret, which Argo CD then tries; nil means none
	VMs    pulumi.Input          // changes with the machines' VMs: after a restore, Argo CD must go on; nil means none
}

// GitOpsHandover installs Argo CD and waits until Argo CD has applied the repository.
type GitOpsHandover = handover.GitOpsHandover

// NewGitOpsHandover installs Argo CD and the root Application. It is complete once Argo CD has applied the folder at the newest revision,
// and every Application below the root is synced and healthy. The release does not wait for its pods: the probe waits for the result and
// names what is stuck. When the handover leaves the stack, the Applications are removed before Argo CD: with what they have applied under
// the policy `delete`, and else without.
func NewGitOpsHandover(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption) (*GitOpsHandover, error) {
	if err := args.validate(); err != nil {
		return nil, component.Failed(typeGitOpsHandover, name, err)
	}
	git := args.GitOps
	return handover.New(ctx, typeGitOpsHandover, name, &handover.Args{
		InCluster: args.InCluster, Steps: args.Steps, GitOps: git, Settings: args.Settings, VMs: args.VMs,
		Install: func(h pulumi.Resource) ([]pulumi.Resource, error) { return args.install(ctx, name, h) },
		Verify:  "argocd", Triggers: args.triggers(),
		VerifySpec: func(target health.Target) probe.Spec {
			return &verify.Spec{
				Target: target, Namespace: cluster.ArgoCDNamespace, Root: cluster.ArgoCDRoot, URL: git.URL, Ref: git.Branch, Path: git.Path,
			}
		},
		Remove: "argocd-removal",
		RemoveSpec: func(target probe.Target) probe.Spec {
			return &removal.Spec{
				Target: target, Namespace: cluster.ArgoCDNamespace, Root: cluster.ArgoCDRoot, Delete: git.DeletionPolicy == cluster.DeletionDelete,
			}
		},
	}, opts...)
}

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
	declared := owner.Declared{Cluster: clusterName, Namespace: cluster.ArgoCDNamespace, Root: cluster.ArgoCDRoot}
	return component.BeforeCreate(ctx, name, kubeconfig, func(ctx context.Context, kubeconfig string) error {
		return owner.Check(ctx, kubeconfig, declared)
	})
}

// install registers the settings, the release and the root Application, and returns them.
func (a *GitOpsHandoverArgs) install(ctx *pulumi.Context, name string, h pulumi.Resource) ([]pulumi.Resource, error) {
	before := pulumi.Composite()
	if a.Before != nil {
		before = a.Before
	}
	values, err := settings.New(ctx, name+"-settings", a.Settings, cluster.ArgoCDNamespace, nil, a.Child(h, before))
	if err != nil {
		return nil, err
	}
	all, own, err := a.Release.Trees()
	if err != nil {
		return nil, err
	}
	// The repo-server's pods mount the settings.
	release, err := helm.NewRelease(ctx, name+"-release", &helm.ReleaseArgs{
		Service: a.Release, Values: all, Own: own, Kubeconfig: a.Kubeconfig, OwnedValues: a.OwnedValues, Git: a.Git,
		Renderer: a.KubernetesProvider,
	}, a.Child(h, pulumi.DependsOn([]pulumi.Resource{values})))
	if err != nil {
		return nil, err
	}
	installed := append(release.Leaves(), values)
	root, err := newRoot(ctx, name+"-root", a, a.Child(h, pulumi.DependsOn(installed)))
	if err != nil {
		return nil, err
	}
	return append(installed, root), nil
}

// triggers returns the values that Argo CD must apply, besides settings.
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
	if values := a.Release.UserValues.String(); values != "" && !a.Release.Owner.IsEngine() {
		triggers = append(triggers, pulumi.String("argo-cd's values "+values))
	}
	if a.Access != nil {
		triggers = append(triggers, a.Access)
	}
	return triggers
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
