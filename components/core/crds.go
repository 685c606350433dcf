package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/core/pins"
	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// typeCRDs is recorded in state; renaming it takes an alias.
const typeCRDs = "slipway:core:CRDs"

// CRDsArgs say which CustomResourceDefinitions a cluster gets.
type CRDsArgs struct {
	Cluster    string             // the cluster's name, for the report; required
	Kubeconfig pulumi.StringInput // cluster-admin kubeconfig, YAML; secret; required
	Sources    []CRDSource        // at least one, each set once
	Timeout    time.Duration      // longest wait for all of them; 0 means crds.DefaultTimeout (5 min)

	CommandProvider pulumi.ProviderResource // required

	// DependsOn must be there before the first definition is: an API that answers. No CNI is needed.
	DependsOn []pulumi.Resource
	// DeletedWith takes the command along when it is deleted; optional.
	DeletedWith pulumi.Resource
}

// CRDSource is a set of definitions and where it comes from.
type CRDSource struct {
	Set     pins.Set // required
	Version string   // release, with or without a v; "" means the set's pinned one
	URL     string   // https URL of a manifest; "" means the project's official one of that release
	SHA256  string   // of the manifest, 64 hexadecimal digits; "" means that any content will do
}

// CRDs is the phase that gives a cluster its CustomResourceDefinitions. They stay when it is deleted: deleting a
// definition deletes all objects of its kind.
type CRDs struct {
	pulumi.ResourceState

	// Report is what was applied, one line of JSON (crds.Report); it holds no secret.
	Report pulumi.StringOutput `pulumi:"report"`

	applied *local.Command
}

// NewCRDs registers the phase. It is one command for all definitions, which runs on create and when a source changes,
// never in preview.
func NewCRDs(ctx *pulumi.Context, name string, args *CRDsArgs, opts ...pulumi.ResourceOption) (*CRDs, error) {
	if err := args.validate(); err != nil {
		return nil, fmt.Errorf("CRDs %q: %w", name, err)
	}
	c := &CRDs{}
	if err := ctx.RegisterComponentResource(typeCRDs, name, c, opts...); err != nil {
		return nil, err
	}
	var err error
	c.applied, err = step.New(ctx, name+"-apply", step.Args{
		Subcommand: "crds", Spec: args.spec(), Timeout: probe.Duration(args.Timeout).Or(crds.DefaultTimeout), Triggers: args.triggers(),
		Provider: args.CommandProvider, DependsOn: args.DependsOn, DeletedWith: args.DeletedWith,
	}, c)
	if err != nil {
		return nil, err
	}
	c.Report = step.Report(c.applied)
	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{"report": c.Report})
}

// Applied is the leaf that is there once all definitions are served.
func (c *CRDs) Applied() pulumi.Resource { return c.applied }

func (a *CRDsArgs) validate() error {
	if a == nil {
		return errors.New("args: missing; give CRDsArgs")
	}
	problems := []error{crds.ValidateSources(a.sources())}
	if a.Cluster == "" {
		problems = append(problems, errors.New("cluster: missing; give the cluster's name"))
	}
	if a.Kubeconfig == nil {
		problems = append(problems, errors.New("kubeconfig: missing; give TalosCluster's"))
	}
	if a.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is negative; give a duration such as 5m", a.Timeout))
	}
	if a.CommandProvider == nil {
		problems = append(problems, errors.New("commandProvider: missing; give one"))
	}
	return errors.Join(problems...)
}

// sources are what the command is told, with the pins filled in.
func (a *CRDsArgs) sources() []crds.Source {
	var sources []crds.Source
	for _, s := range a.Sources {
		version := or(s.Version, s.Set.Version)
		url := s.URL
		if url == "" && s.Set.Key != "" {
			url = s.Set.URL(version)
		}
		sources = append(sources, crds.Source{Name: s.Set.Name, Version: version, URL: url, SHA256: s.SHA256, Bundle: s.Set.Bundle})
	}
	return sources
}

// spec is what the command reads, with the kubeconfig in it.
func (a *CRDsArgs) spec() pulumi.StringOutput {
	spec := crds.Spec{Cluster: a.Cluster, Sources: a.sources(), Timeout: probe.Duration(a.Timeout)}
	return a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) (string, error) {
		full := spec
		full.Kubeconfig = kubeconfig
		return probe.Encode(&full)
	}).(pulumi.StringOutput)
}

// triggers show in a preview what changes, which the secret specification cannot.
func (a *CRDsArgs) triggers() pulumi.Array {
	var triggers pulumi.Array
	for _, s := range a.sources() {
		pin := s.Name + " " + s.Version + " " + s.URL
		if s.SHA256 != "" {
			pin += " sha256:" + s.SHA256
		}
		triggers = append(triggers, pulumi.String(pin))
	}
	return triggers
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
