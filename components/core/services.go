// Package core installs what workloads require: CRDs, because charts are installed without theirs, and the core services (DNS,
// image mirror, certificates).
package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/component"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/internal/helm"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// typeCoreServices is part of the state: a rename needs Aliases.
const typeCoreServices = "slipway:core:CoreServices"

// CoreServicesArgs are the arguments of CoreServices.
type CoreServicesArgs struct {
	component.InCluster
	component.Steps

	Services []cluster.Service // services to install; the first is the cluster's DNS, which the others wait for; required
	Timeout  time.Duration     // longest wait for the pods of one release; required
}

// CoreServices are the Helm releases of the core services, and the probes that wait until their pods run.
type CoreServices struct {
	pulumi.ResourceState

	leaves []pulumi.Resource
}

// NewCoreServices installs the first service, the DNS, and then the others in parallel. Helm waits for none of them. After each
// release a probe waits for its pods; it reports what it waits for and names a pod that does not run.
func NewCoreServices(ctx *pulumi.Context, name string, args *CoreServicesArgs, opts ...pulumi.ResourceOption) (*CoreServices, error) {
	s := &CoreServices{}
	if err := component.Register(ctx, typeCoreServices, name, args.validate(), nil, s, opts...); err != nil {
		return nil, err
	}
	var dns []pulumi.Resource
	for i, service := range args.Services {
		probe, err := s.install(ctx, name, args, service, dns)
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

// install registers a service's release after the resources in after, and then its probe, which it returns. The name is that of the
// component.
func (s *CoreServices) install(
	ctx *pulumi.Context, name string, args *CoreServicesArgs, service cluster.Service, after []pulumi.Resource,
) (pulumi.Resource, error) {
	values, checksum, err := inputs(service)
	if err != nil {
		return nil, component.Failed(typeCoreServices, name, fmt.Errorf("values of %s: %w", service.Name, err))
	}
	name += "-" + service.Name
	if service.MakeNamespace {
		namespace, err := s.namespace(ctx, name+"-namespace", args, service)
		if err != nil {
			return nil, err
		}
		after = append(slices.Clone(after), namespace)
	}
	release, err := helm.NewRelease(ctx, name, &helm.ReleaseArgs{
		Name: service.Name, Namespace: service.Namespace, Chart: service.Chart, Version: service.Version, Repository: service.Repository,
		Values: values, Kubeconfig: args.Kubeconfig,
	}, args.Child(s, pulumi.DependsOn(after)))
	if err != nil {
		return nil, err
	}
	return step.New(ctx, name+"-probe", step.Args{
		Subcommand: "workloads", Spec: args.spec(service), Timeout: args.Timeout,
		// The probe runs again when Helm changes the release.
		Triggers: pulumi.Array{pulumi.String(service.Name + " " + service.Version), pulumi.String("values sha256:" + checksum)},
		Provider: args.CommandProvider, DependsOn: []pulumi.Resource{release}, DeletedWith: args.DeletedWith,
	}, s)
}

// namespace registers the service's own namespace.
func (s *CoreServices) namespace(
	ctx *pulumi.Context, name string, args *CoreServicesArgs, service cluster.Service,
) (pulumi.Resource, error) {
	var labels pulumi.StringMap // nil is omitted; an empty map would be an input
	if service.Privileged {
		labels = pulumi.StringMap{}
		for _, mode := range []string{"enforce", "audit", "warn"} {
			labels["pod-security.kubernetes.io/"+mode] = pulumi.String("privileged")
		}
	}
	return v1.NewNamespace(ctx, name, &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(service.Namespace), Labels: labels},
	}, args.Child(s))
}

// spec returns the probe's standard input, which contains the kubeconfig.
func (a *CoreServicesArgs) spec(service cluster.Service) pulumi.StringOutput {
	spec := workloads.Spec{
		Target:   health.Target{Cluster: a.Name, Timeout: probe.Duration(a.Timeout)},
		Releases: []workloads.Release{{Namespace: service.Namespace, Name: service.Name}},
	}
	if service.Accepts != nil {
		spec.Accepts = []workloads.Sample{workloads.Sample(*service.Accepts)}
	}
	return a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) (string, error) {
		full := spec
		full.Kubeconfig = kubeconfig
		return probe.Encode(&full)
	}).(pulumi.StringOutput)
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

// inputs returns the values of a service's chart as inputs, and their checksum.
func inputs(service cluster.Service) (pulumi.Map, string, error) {
	text, err := json.Marshal(service.Values)
	if err != nil {
		return nil, "", err
	}
	tree, err := service.UserValues.MergedInto(service.Values)
	if err != nil {
		return nil, "", err
	}
	if len(service.UserValues) > 0 {
		if text, err = json.Marshal(tree); err != nil {
			return nil, "", err
		}
	}
	inputs := pulumi.Map{}
	for key, value := range tree {
		inputs[key] = pulumi.Any(value)
	}
	sum := sha256.Sum256(text)
	return inputs, hex.EncodeToString(sum[:]), nil
}
