// Package gitops hands a cluster over to Flux.
package gitops

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handover"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/components/internal/settings"
	verify "github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/internal/engines/flux/prune"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// typeGitOpsHandover is part of the state: a rename needs Aliases.
const typeGitOpsHandover = "slipway:gitops:GitOpsHandover"

// Settings are values of the cluster that manifests of the GitOps tree can substitute, by UPPER_SNAKE name. They must not contain
// secrets, because they are stored in a ConfigMap.
type Settings = settings.Settings

// GitOpsHandoverArgs are the arguments of a GitOpsHandover.
type GitOpsHandoverArgs struct {
	component.InCluster
	component.Steps

	GitOps   cluster.GitOps      // Flux, and what it syncs from; required
	Secrets  cluster.FluxSecrets // the Secrets that Flux needs; Source is required unless the source is public
	Settings Settings            // values that the GitOps tree can substitute; required

	Access     pulumi.StringInput // changes with the content of Secrets.Source and Secrets.CA, which Flux then tries; nil means none
	Decryption pulumi.StringInput // the same for Secrets.Decryption
	VMs        pulumi.Input       // changes with the machines' VMs: after a restore, Flux must go on; nil means none

	OperatorGit   *cluster.Git      // what the repository declares of flux-operator; nil means nothing
	OperatorAfter []pulumi.Resource // what flux-operator waits for, such as its namespace: it needs neither Secrets nor DNS; required
}

// GitOpsHandover installs Flux and waits until Flux has applied the repository.
type GitOpsHandover = handover.GitOpsHandover

// NewGitOpsHandover installs flux-operator and a FluxInstance. It is complete once Flux has fetched the revision and applied the
// root Kustomization. The operator's release does not wait for its pods: the probe waits for the result and names objects that
// are stuck. When the handover leaves the stack under the policy `delete`, Flux removes everything that it has applied before it is
// uninstalled.
func NewGitOpsHandover(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption) (*GitOpsHandover, error) {
	if err := args.validate(); err != nil {
		return nil, component.Failed(typeGitOpsHandover, name, err)
	}
	source, remove := args.GitOps.Source(), ""
	if args.GitOps.DeletionPolicy == cluster.DeletionDelete {
		remove = "prune"
	}
	return handover.New(ctx, typeGitOpsHandover, name, &handover.Args{
		InCluster: args.InCluster, Steps: args.Steps, GitOps: args.GitOps, Settings: args.Settings, VMs: args.VMs,
		Install: func(h pulumi.Resource) ([]pulumi.Resource, error) { return args.install(ctx, name, h) },
		Verify:  "handover", Triggers: args.triggers(),
		VerifySpec: func(target health.Target) probe.Spec {
			return &verify.Spec{
				Target: target, Namespace: cluster.FluxNamespace, Instance: cluster.FluxInstance,
				Source: cluster.FluxSync, Kustomization: cluster.FluxSync,
				SourceKind: string(source.Kind), URL: source.URL, Ref: source.Ref, Path: args.GitOps.Path,
			}
		},
		Remove: remove,
		RemoveSpec: func(target probe.Target) probe.Spec {
			return &prune.Spec{
				Target: target, Namespace: cluster.FluxNamespace, Instance: cluster.FluxInstance, Kustomization: cluster.FluxSync,
			}
		},
	}, opts...)
}

// install registers the settings, the operator and the instance, and returns the instance, which is the last one. The operator comes up
// while the Secrets are made, so that it is there when the instance is.
func (a *GitOpsHandoverArgs) install(ctx *pulumi.Context, name string, h pulumi.Resource) ([]pulumi.Resource, error) {
	ours, err := RefuseForeignFlux(ctx, name+"-instance-foreign", a.Name, a.Kubeconfig, a.GitOps)
	if err != nil {
		return nil, err
	}
	// Flux applies a changed setting at once, not at the next interval of each Kustomization.
	watched := pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")}
	values, err := settings.New(ctx, name+"-settings", a.Settings, cluster.FluxNamespace, watched, a.Child(h, ours))
	if err != nil {
		return nil, err
	}
	early := a.InCluster
	early.DependsOn = a.OperatorAfter
	service := a.GitOps.Operator.Service()
	all, own, err := service.Trees()
	if err != nil {
		return nil, err
	}
	operator, err := helm.NewRelease(ctx, name+"-operator", &helm.ReleaseArgs{
		Service: service, Values: all, Own: own, Kubeconfig: a.Kubeconfig, OwnedValues: a.OwnedValues, Git: a.OperatorGit,
		Renderer: a.KubernetesProvider,
	}, early.Child(h, ours))
	if err != nil {
		return nil, err
	}
	first := append(operator.Leaves(), values)
	instance, err := newInstance(ctx, name+"-instance", a, a.Child(h, pulumi.DependsOn(first)), ours)
	return []pulumi.Resource{instance}, err
}

// triggers returns the values that Flux must apply, besides settings.
func (a *GitOpsHandoverArgs) triggers() pulumi.Array {
	source := a.GitOps.Source()
	triggers := pulumi.Array{
		pulumi.String(a.GitOps.Path + " of " + source.URL + " at " + source.Ref),
		pulumi.String("flux-operator " + a.GitOps.Operator.Version),
		pulumi.String("flux " + a.GitOps.Flux.Version),
	}
	if access := a.GitOps.Access(); access != cluster.GitByPassword {
		triggers = append(triggers, pulumi.String("access by "+access))
	}
	if options := a.options(); options != "" {
		triggers = append(triggers, pulumi.String("flux's options "+options))
	}
	if a.Secrets.Decryption != "" {
		triggers = append(triggers, pulumi.String("decryption with "+a.Secrets.Decryption))
	}
	if values := a.GitOps.Operator.Values.String(); values != "" && !a.GitOps.Operator.Owner.IsEngine() {
		triggers = append(triggers, pulumi.String("flux-operator's values "+values))
	}
	for _, secret := range []pulumi.StringInput{a.Access, a.Decryption} {
		if secret != nil {
			triggers = append(triggers, secret)
		}
	}
	return triggers
}

// options describes the options of Flux that are not the defaults; "" if all are.
func (a *GitOpsHandoverArgs) options() string {
	flux, plain := a.GitOps.Flux, cluster.DefaultFlux()
	plain.Version = flux.Version // has a trigger of its own
	if reflect.DeepEqual(flux, plain) && a.Secrets.CA == "" && a.Secrets.Images == "" {
		return ""
	}
	text, err := json.Marshal(flux)
	if err != nil {
		panic("gitops: the options of Flux cannot be written: " + err.Error())
	}
	return string(text) + a.Secrets.CA + a.Secrets.Images
}

func (a *GitOpsHandoverArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass GitOpsHandoverArgs")
	}
	problems := []error{a.InCluster.Validate(), a.Steps.Validate(), a.Settings.Validate()}
	if a.GitOps.Source().URL == "" {
		problems = append(problems, errors.New("gitOps: is missing; pass the cluster's"))
	}
	if len(a.OperatorAfter) == 0 {
		problems = append(problems, errors.New("operatorAfter: is missing; pass the gate's leaves and the namespace"))
	}
	if a.Secrets.Source == "" && a.GitOps.Access() != cluster.Public {
		problems = append(problems, errors.New("secrets.source: is missing; pass the name of the Secret with Flux's access to its source"))
	}
	return errors.Join(problems...)
}
