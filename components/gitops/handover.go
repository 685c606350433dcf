// Package gitops hands a cluster over to Flux.
package gitops

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/components/internal/settings"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/flux/handover"
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

	OperatorGit *cluster.Git // what the repository declares of flux-operator; nil means nothing
}

// GitOpsHandover installs Flux and waits until Flux has applied the repository.
type GitOpsHandover struct {
	pulumi.ResourceState

	Report   pulumi.StringOutput `pulumi:"report"`   // the probe's report, one line of JSON (health.Report); it contains no secret
	Revision pulumi.StringOutput `pulumi:"revision"` // the revision that Flux has applied, such as refs/heads/main@sha1:…

	leaves []pulumi.Resource
}

// NewGitOpsHandover installs flux-operator and a FluxInstance. It is complete once Flux has fetched the revision and applied the
// root Kustomization. The operator's release does not wait for its pods: the probe waits for the result and names objects that
// are stuck.
func NewGitOpsHandover(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption) (*GitOpsHandover, error) {
	h := &GitOpsHandover{}
	if err := component.Register(ctx, typeGitOpsHandover, name, args.validate(), nil, h, opts...); err != nil {
		return nil, err
	}
	instance, err := h.install(ctx, name, args)
	if err != nil {
		return nil, err
	}
	removal, err := newRemoval(ctx, name+"-removal", args, instance, h)
	if err != nil {
		return nil, err
	}
	// Pulumi deletes the probe before the removal. If that is interrupted and GitOps comes back, the probe is new, and sees what is missing.
	probe, err := h.verify(ctx, name, args, instance, removal)
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

// Leaves returns the resource that others wait for: the probe, which ends once Flux has applied the repository.
func (h *GitOpsHandover) Leaves() []pulumi.Resource { return slices.Clone(h.leaves) }

// install registers the settings, the operator and the instance, and returns the instance, which is the last one.
func (h *GitOpsHandover) install(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs) (pulumi.Resource, error) {
	ours, err := RefuseForeignFlux(ctx, name+"-instance-foreign", args.Name, args.Kubeconfig, args.GitOps)
	if err != nil {
		return nil, err
	}
	// The first object, before which a Flux of somebody else is refused.
	// Flux applies a changed setting at once, not at the next interval of each Kustomization.
	watched := pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")}
	values, err := settings.New(ctx, name+"-settings", args.Settings, cluster.FluxNamespace, watched, args.Child(h, ours))
	if err != nil {
		return nil, err
	}
	after := args.Child(h, pulumi.DependsOn([]pulumi.Resource{values}))
	service := args.GitOps.Operator.Service()
	own, err := cluster.ChartValues(nil).MergedInto(service.Values)
	if err != nil {
		return nil, err
	}
	all, err := service.UserValues.MergedInto(service.Values)
	if err != nil {
		return nil, err
	}
	var given pulumi.MapInput // nil without values
	if len(all) > 0 {
		given = pulumi.ToMap(all)
	}
	operator, err := helm.NewRelease(ctx, name+"-operator", &helm.ReleaseArgs{
		Values: given,
		Name:   cluster.FluxOperator, Namespace: cluster.FluxNamespace, Chart: args.GitOps.Operator.Chart, Version: args.GitOps.Operator.Version,
		UserValues: args.GitOps.Operator.Values, Kubeconfig: args.Kubeconfig,
		Flux: args.GitOps.Operator.Owner == cluster.OwnerFlux, Own: pulumi.ToMap(own), FluxValues: args.FluxValues,
		Git: args.OperatorGit, Renderer: args.KubernetesProvider,
	}, after)
	if err != nil {
		return nil, err
	}
	first := append(operator.Leaves(), values)
	return newInstance(ctx, name+"-instance", args, args.Child(h, pulumi.DependsOn(first)), ours)
}

// verify registers the probe. It runs on create, and again after a change that Flux must apply.
func (h *GitOpsHandover) verify(
	ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, after ...pulumi.Resource,
) (*local.Command, error) {
	return step.New(ctx, name+"-probe", step.Args{
		Run: step.Run{
			Subcommand: "handover", Spec: args.spec(), Timeout: args.GitOps.Timeout.Duration,
			Provider: args.CommandProvider, DependsOn: slices.Concat(args.DependsOn, after),
		},
		Triggers: args.triggers(), ReplaceWith: []pulumi.Resource{args.DeletedWith},
	}, h)
}

// spec returns the probe's standard input, which contains the kubeconfig.
func (a *GitOpsHandoverArgs) spec() pulumi.StringOutput {
	source := a.GitOps.Source()
	return a.Spec(func(kubeconfig string) probe.Spec {
		return &handover.Spec{
			Target:        a.Target(kubeconfig, a.GitOps.Timeout.Duration),
			Namespace:     cluster.FluxNamespace,
			Instance:      cluster.FluxInstance,
			Source:        cluster.FluxSync,
			Kustomization: cluster.FluxSync,
			SourceKind:    string(source.Kind),
			URL:           source.URL,
			Ref:           source.Ref,
			Path:          a.GitOps.Path,
		}
	})
}

// triggers returns the values that Flux must apply. After a change of the spec alone, a run that failed would not be repeated.
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
	if values := a.GitOps.Operator.Values.String(); values != "" && a.GitOps.Operator.Owner != cluster.OwnerFlux {
		triggers = append(triggers, pulumi.String("flux-operator's values "+values))
	}
	for _, secret := range []pulumi.StringInput{a.Access, a.Decryption} {
		if secret != nil {
			triggers = append(triggers, secret)
		}
	}
	if a.VMs != nil {
		triggers = append(triggers, a.VMs)
	}
	return append(triggers, a.Settings.Triggers()...)
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
	if a.Secrets.Source == "" && a.GitOps.Access() != cluster.Public {
		problems = append(problems, errors.New("secrets.source: is missing; pass the name of the Secret with Flux's access to its source"))
	}
	return errors.Join(problems...)
}
