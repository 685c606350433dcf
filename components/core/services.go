// Package core installs what workloads require: CRDs, because charts are installed without theirs, and the core services (DNS,
// image mirror, certificates).
package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/service"
)

// typeCoreServices is part of the state: a rename needs Aliases.
const typeCoreServices = "slipway:core:CoreServices"

// CoreServicesArgs are the arguments of CoreServices.
type CoreServicesArgs struct {
	component.InCluster
	component.Steps

	Services []cluster.Service                 // services to install; the first is the cluster's DNS, which the others wait for; required
	Git      func(release string) *cluster.Git // what the repository declares of a service; nil means nothing of any
	Timeout  time.Duration                     // longest wait for the pods of one release; required
}

// CoreServices are the Helm releases of the core services, and the probes that wait until their pods run.
type CoreServices struct {
	pulumi.ResourceState

	leaves []pulumi.Resource
}

// NewCoreServices installs the first service, the DNS, and then the others in parallel. Helm waits for none of them. After each
// release a probe waits for the release's pods, and names pods that do not run.
func NewCoreServices(ctx *pulumi.Context, name string, args *CoreServicesArgs, opts ...pulumi.ResourceOption) (*CoreServices, error) {
	s := &CoreServices{}
	if err := component.Register(ctx, typeCoreServices, name, args.validate(), nil, s, opts...); err != nil {
		return nil, err
	}
	var dns []pulumi.Resource
	for i, one := range args.Services {
		probe, err := s.install(ctx, name, args, one, dns)
		if err != nil {
			return nil, err
		}
		s.leaves = append(s.leaves, probe)
		if i == 0 {
			dns = []pulumi.Resource{probe}
		}
	}
	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{})
}

// Leaves returns the resources that others wait for: the probe of each release.
func (s *CoreServices) Leaves() []pulumi.Resource { return slices.Clone(s.leaves) }

// install registers a service after the resources in after, and returns its probe. The name is that of the component.
func (s *CoreServices) install(
	ctx *pulumi.Context, name string, args *CoreServicesArgs, one cluster.Service, after []pulumi.Resource,
) (pulumi.Resource, error) {
	in := &service.Args{InCluster: args.InCluster, Steps: args.Steps, Service: one, Timeout: args.Timeout, After: after}
	if args.Git != nil {
		in.Git = args.Git(one.Name)
	}
	probe, err := service.Install(ctx, name+"-"+one.Name, in, s)
	if err != nil {
		return nil, component.Failed(typeCoreServices, name, err)
	}
	return probe, nil
}

func (a *CoreServicesArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass CoreServicesArgs")
	}
	problems := []error{a.InCluster.Validate(), a.Steps.Validate()}
	if len(a.Services) == 0 {
		problems = append(problems, errors.New("services: are missing; pass the cluster's, its DNS first"))
	}
	if a.Timeout <= 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is not a wait; pass a duration such as 10m", a.Timeout))
	}
	return errors.Join(problems...)
}
