package core

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/probe"
)

// typeCRDs is part of the state: a rename needs Aliases.
const typeCRDs = "slipway:core:CRDs"

// CRDsArgs are the arguments of CRDs.
type CRDsArgs struct {
	component.Lifetime
	component.Steps

	Sets []cluster.CRDSet // sets to install; at least one, each once
}

// CRDs is the phase that installs CustomResourceDefinitions. They stay when the component is deleted: deleting a CRD deletes all
// objects of its kind.
type CRDs struct {
	pulumi.ResourceState

	// Report lists the applied CRDs, one line of JSON (crds.Report); it contains no secret.
	Report pulumi.StringOutput `pulumi:"report"`

	leaves []pulumi.Resource
}

// NewCRDs registers the phase: one command for all CRDs. It runs on create and when a source changes, never in a preview. It
// needs an API that answers, and no CNI.
func NewCRDs(ctx *pulumi.Context, name string, args *CRDsArgs, opts ...pulumi.ResourceOption) (*CRDs, error) {
	c := &CRDs{}
	if err := component.Register(ctx, typeCRDs, name, args.validate(), nil, c, opts...); err != nil {
		return nil, err
	}
	applied, err := step.New(ctx, name+"-apply", step.Args{
		Run: step.Run{
			Subcommand: "crds", Spec: args.spec(), Timeout: crds.DefaultTimeout,
			Provider: args.CommandProvider, DependsOn: args.DependsOn, DeletedWith: args.DeletedWith,
		},
		Triggers: args.triggers(),
	}, c)
	if err != nil {
		return nil, err
	}
	c.Report, c.leaves = step.Report(applied), []pulumi.Resource{applied}
	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{"report": c.Report})
}

// Leaves returns the resource that others wait for: the command that ends once all CRDs are served. A nil CRDs has none.
func (c *CRDs) Leaves() []pulumi.Resource {
	if c == nil {
		return nil
	}
	return slices.Clone(c.leaves)
}

func (a *CRDsArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass CRDsArgs")
	}
	return errors.Join(a.Lifetime.Validate(), a.Steps.Validate(), crds.ValidateSources(a.sources()))
}

// sources returns the sources of all sets, in the command's form.
func (a *CRDsArgs) sources() []crds.Source {
	var sources []crds.Source
	for _, set := range a.Sets {
		sources = append(sources, crds.Source{
			Name: set.Name, Version: set.Source.Version, URL: set.Source.URL, SHA256: set.Source.SHA256, Bundle: set.Bundle,
		})
	}
	return sources
}

// spec returns the command's standard input, which contains the kubeconfig.
func (a *CRDsArgs) spec() pulumi.StringOutput {
	return a.Spec(func(kubeconfig string) probe.Spec {
		return &crds.Spec{Target: probe.Target{Cluster: a.Name, Kubeconfig: kubeconfig}, Sources: a.sources()}
	})
}

// triggers returns versions and checksums of the sources. A preview displays their changes, but not those of the secret spec.
func (a *CRDsArgs) triggers() pulumi.Array {
	var triggers pulumi.Array
	for _, source := range a.sources() {
		pin := source.Name + " " + source.Version + " " + source.URL
		if source.SHA256 != "" {
			pin += " sha256:" + source.SHA256
		}
		triggers = append(triggers, pulumi.String(pin))
	}
	return triggers
}
