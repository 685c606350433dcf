package core

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/internal/helm"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// coreService is one of them.
type coreService struct {
	release helm.ReleaseArgs
	values  any // typed, in the chart's own words
	after   []pulumi.Resource
	accepts []workloads.Sample // what the API takes once the service runs
}

// install registers a service's release, and behind it the probe that sees it run, which is the leaf.
func (s *CoreServices) install(ctx *pulumi.Context, name string, args *CoreServicesArgs, one coreService) (pulumi.Resource, error) {
	inputs, err := toMap(one.values)
	if err != nil {
		return nil, err
	}
	one.release.Values, one.release.Kubeconfig = inputs, args.Kubeconfig
	release, err := helm.NewRelease(ctx, name, &one.release, args.childOptions(s), pulumi.DependsOn(one.after))
	if err != nil {
		return nil, err
	}
	triggers, err := one.triggers()
	if err != nil {
		return nil, err
	}
	seen, err := step.New(ctx, name+"-probe", step.Args{
		Subcommand: "workloads", Spec: args.spec(one), Timeout: probe.Duration(args.Timeout).Or(health.DefaultTimeout), Triggers: triggers,
		Provider: args.CommandProvider, DependsOn: []pulumi.Resource{release}, DeletedWith: args.DeletedWith,
	}, s)
	if err != nil {
		return nil, err
	}
	s.leaves = append(s.leaves, seen)
	return seen, nil
}

// spec is what the probe reads, with the kubeconfig in it.
func (a *CoreServicesArgs) spec(one coreService) pulumi.StringOutput {
	return a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) (string, error) {
		return probe.Encode(&workloads.Spec{
			Target:   health.Target{Cluster: a.Cluster, Kubeconfig: kubeconfig, Timeout: probe.Duration(a.Timeout)},
			Releases: []workloads.Release{{Namespace: one.release.Namespace, Name: one.release.Name}}, Accepts: one.accepts,
		})
	}).(pulumi.StringOutput)
}

// triggers have the probe look again at what Helm has changed.
func (s coreService) triggers() (pulumi.Array, error) {
	sum, err := checksum(s.values)
	return pulumi.Array{pulumi.String(s.release.Name + " " + s.release.Version), pulumi.String("values sha256:" + sum)}, err
}
