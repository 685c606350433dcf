// Package gitops hands a cluster over to Flux.
package gitops

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/handover"
	"github.com/slipway-platform/slipway/internal/helm"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// typeGitOpsHandover is recorded in state; renaming it takes an alias.
const typeGitOpsHandover = "slipway:gitops:GitOpsHandover"

// The objects of the handover. Flux, the handover probe and the GitOps tree know them by these names.
const (
	Namespace    = "flux-system"      // must exist
	OperatorName = "flux-operator"    // Helm release
	InstanceName = "flux"             // FluxInstance
	SyncName     = "flux-system"      // GitRepository and root Kustomization
	SettingsName = "cluster-settings" // ConfigMap
)

// Operator is the chart of flux-operator.
type Operator struct {
	Chart   string // oci:// reference without a tag; required
	Version string // required
}

// GitOpsHandoverArgs say what Flux is and what it applies.
type GitOpsHandoverArgs struct {
	Cluster    string             // name, for the report; required
	Kubeconfig pulumi.StringInput // cluster-admin kubeconfig, YAML; secret; required

	Operator Operator // required
	Flux     Flux     // required
	Sync     Sync     // required
	Settings Settings // required

	Timeout time.Duration // longest wait for Flux to have applied the tree; 0 means health.DefaultTimeout

	KubernetesProvider pulumi.ProviderResource // required
	CommandProvider    pulumi.ProviderResource // required

	// DependsOn must be there before anything of Flux is: the readiness gate's probe, the Git credentials.
	DependsOn []pulumi.Resource
	// DeletedWith takes the objects along when it is deleted, so that destroy needs no answering API; optional.
	DeletedWith pulumi.Resource
}

// GitOpsHandover is a cluster that Flux has taken over.
type GitOpsHandover struct {
	pulumi.ResourceState

	Report   pulumi.StringOutput `pulumi:"report"`   // what the probe saw, one line of JSON (health.Report); holds no secret
	Revision pulumi.StringOutput `pulumi:"revision"` // the revision that Flux has applied, such as refs/heads/main@sha1:…

	probe *local.Command
}

// NewGitOpsHandover installs flux-operator and a FluxInstance, and is done once Flux has fetched the revision and
// applied the root Kustomization. The operator's release is not waited for by itself: the probe sees what it leads to,
// and names what is stuck.
func NewGitOpsHandover(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, opts ...pulumi.ResourceOption) (*GitOpsHandover, error) {
	if err := args.validate(); err != nil {
		return nil, fmt.Errorf("GitOpsHandover %q: %w", name, err)
	}
	h := &GitOpsHandover{}
	if err := ctx.RegisterComponentResource(typeGitOpsHandover, name, h, opts...); err != nil {
		return nil, err
	}
	instance, err := h.install(ctx, name, args)
	if err != nil {
		return nil, err
	}
	if err := h.verify(ctx, name, args, instance); err != nil {
		return nil, err
	}
	h.Report = step.Report(h.probe)
	h.Revision = h.Report.ApplyT(func(line string) (string, error) {
		report, err := health.ReportFrom(line)
		return report.Revision, err
	}).(pulumi.StringOutput)
	return h, ctx.RegisterResourceOutputs(h, pulumi.Map{"report": h.Report, "revision": h.Revision})
}

// Probe is the resource that is created once Flux has been seen to have taken over.
func (h *GitOpsHandover) Probe() pulumi.Resource { return h.probe }

// install registers everything that makes Flux run, and returns the instance, which comes last.
func (h *GitOpsHandover) install(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs) (pulumi.Resource, error) {
	opts := args.childOptions(h)
	settings, err := newSettings(ctx, name+"-settings", args.Settings, opts)
	if err != nil {
		return nil, err
	}
	operator, err := helm.NewRelease(ctx, name+"-operator", &helm.ReleaseArgs{
		Name:      OperatorName,
		Namespace: Namespace,
		Chart:     args.Operator.Chart,
		Version:   args.Operator.Version,

		Kubeconfig: args.Kubeconfig,
	}, opts)
	if err != nil {
		return nil, err
	}
	return newInstance(ctx, name+"-instance", args.Flux, args.Sync,
		pulumi.Composite(opts, pulumi.DependsOn([]pulumi.Resource{settings, operator})))
}

// verify registers the probe. It runs on create, and again when anything changes that Flux has to follow.
func (h *GitOpsHandover) verify(ctx *pulumi.Context, name string, args *GitOpsHandoverArgs, instance pulumi.Resource) error {
	var err error
	h.probe, err = step.New(ctx, name+"-probe", step.Args{
		Subcommand: "handover", Spec: args.spec(), Timeout: probe.Duration(args.Timeout).Or(health.DefaultTimeout), Triggers: args.triggers(),
		Provider: args.CommandProvider, DependsOn: append(slices.Clone(args.DependsOn), instance),
	}, h)
	return err
}

// spec is what the probe reads, with the kubeconfig in it.
func (a *GitOpsHandoverArgs) spec() pulumi.StringOutput {
	return a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) (string, error) {
		return probe.Encode(&handover.Spec{
			Target:        health.Target{Cluster: a.Cluster, Kubeconfig: kubeconfig, Timeout: probe.Duration(a.Timeout)},
			Namespace:     Namespace,
			Instance:      InstanceName,
			Source:        SyncName,
			Kustomization: SyncName,
			URL:           a.Sync.URL,
			Ref:           a.Sync.ref(),
			Path:          a.Sync.Path,
		})
	}).(pulumi.StringOutput)
}

// triggers are what Flux has to follow beside what the spec holds.
func (a *GitOpsHandoverArgs) triggers() pulumi.Array {
	triggers := pulumi.Array{
		pulumi.String("flux-operator " + a.Operator.Version),
		pulumi.String("flux " + a.Flux.Version),
	}
	for _, setting := range slices.Sorted(maps.Keys(a.Settings)) {
		triggers = append(triggers, pulumi.String(setting+"="+a.Settings[setting]))
	}
	return triggers
}

func (a *GitOpsHandoverArgs) childOptions(parent pulumi.Resource) pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{
		pulumi.Parent(parent), pulumi.Provider(a.KubernetesProvider), pulumi.DependsOn(a.DependsOn),
	}
	if a.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(a.DeletedWith))
	}
	return pulumi.Composite(opts...)
}

func (a *GitOpsHandoverArgs) validate() error {
	if a == nil {
		return errors.New("args: missing; give GitOpsHandoverArgs")
	}
	problems := []error{a.Flux.validate(), a.Sync.validate(), a.Settings.validate()}
	for _, field := range []struct{ name, value string }{
		{"cluster", a.Cluster}, {"operator.chart", a.Operator.Chart}, {"operator.version", a.Operator.Version},
	} {
		if field.value == "" {
			problems = append(problems, fmt.Errorf("%s: missing; give one", field.name))
		}
	}
	if a.Kubeconfig == nil {
		problems = append(problems, errors.New("kubeconfig: missing; give TalosCluster's"))
	}
	if a.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is negative; give a duration such as 10m", a.Timeout))
	}
	if a.KubernetesProvider == nil {
		problems = append(problems, errors.New("kubernetesProvider: missing; give the provider of the cluster"))
	}
	if a.CommandProvider == nil {
		problems = append(problems, errors.New("commandProvider: missing; give one"))
	}
	return errors.Join(problems...)
}
