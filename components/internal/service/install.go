// Package service registers core services and the like: a Helm release, its namespace, and the probe that waits until its pods run.
package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Args are the arguments of Install.
type Args struct {
	component.InCluster
	component.Steps

	Service cluster.Service   // required
	Timeout time.Duration     // longest wait for the pods of the release; required
	After   []pulumi.Resource // resources that must exist before the release; optional

	Git *cluster.Git // what the repository declares of the service; nil means nothing

	// Reads is a checksum of what the pods read only when they start; nil means nothing. It is the annotation cluster.AnnotationReads at the
	// chart's value PodAnnotations, such as connect.podAnnotations.
	Reads          pulumi.StringInput
	PodAnnotations string
}

// Install registers a service's release, and then its probe, which it returns: the probe ends once the service works. Helm waits for no
// pods. The probe names pods that do not run. The names of all resources begin with name.
func Install(ctx *pulumi.Context, name string, args *Args, parent pulumi.Resource) (pulumi.Resource, error) {
	service, after := args.Service, args.After
	values, own, checksum, err := args.values()
	if err != nil {
		return nil, fmt.Errorf("values of %s: %w", service.Name, err)
	}
	if service.MakeNamespace {
		namespace, err := args.namespace(ctx, name+"-namespace", parent)
		if err != nil {
			return nil, err
		}
		after = append(slices.Clone(after), namespace)
	}
	release, err := helm.NewRelease(ctx, name, &helm.ReleaseArgs{
		Service: service, Values: values, Own: own, Kubeconfig: args.Kubeconfig, OwnedValues: args.OwnedValues, Git: args.Git,
		Renderer: args.KubernetesProvider,
	}, args.Child(parent, pulumi.DependsOn(after)))
	if err != nil {
		return nil, err
	}
	// The probe runs again when Helm changes the release.
	return args.probe(ctx, name+"-probe", pulumi.Array{pulumi.String("values sha256:" + checksum)}, release.Leaves(), nil, parent)
}

// Await registers a probe that waits until a controller of the service has acted on an object. The object is among After.
func Await(ctx *pulumi.Context, name string, args *Args, awaited workloads.Awaited, parent pulumi.Resource) (pulumi.Resource, error) {
	return args.probe(ctx, name, nil, args.After, []workloads.Awaited{awaited}, parent)
}

// probe registers a probe of the service's workloads. It runs again after a change of what is in triggers.
func (a *Args) probe(
	ctx *pulumi.Context, name string, triggers pulumi.Array, after []pulumi.Resource, awaits []workloads.Awaited, parent pulumi.Resource,
) (pulumi.Resource, error) {
	triggers = append(pulumi.Array{pulumi.String(a.Service.Name + " " + a.Service.Version)}, triggers...)
	if a.Reads != nil {
		triggers = append(triggers, a.Reads)
	}
	return step.New(ctx, name, step.Args{
		Run: step.Run{
			Subcommand: "workloads", Spec: a.spec(awaits), Timeout: a.Timeout,
			Provider: a.CommandProvider, DependsOn: after, DeletedWith: a.DeletedWith,
		},
		Triggers: triggers,
	}, parent)
}

// namespace registers the service's own namespace. It stays with a release that an engine owns: whoever removes the service from the
// stack leaves it to the engine.
func (a *Args) namespace(ctx *pulumi.Context, name string, parent pulumi.Resource) (pulumi.Resource, error) {
	var labels pulumi.StringMap // nil is omitted; an empty map would be an input
	if a.Service.Privileged {
		labels = pulumi.StringMap{}
		for _, mode := range []string{"enforce", "audit", "warn"} {
			labels["pod-security.kubernetes.io/"+mode] = pulumi.String("privileged")
		}
	}
	return v1.NewNamespace(ctx, name, &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(a.Service.Namespace), Labels: labels},
	}, a.Child(parent, pulumi.RetainOnDelete(a.Service.Owner.IsEngine())))
}

// spec returns the probe's standard input, which contains the kubeconfig.
func (a *Args) spec(awaits []workloads.Awaited) pulumi.StringOutput {
	spec := workloads.Spec{
		Target:   a.Target("", a.Timeout),
		Releases: []workloads.Release{{Namespace: a.Service.Namespace, Name: a.Service.Name}}, Awaits: awaits,
	}
	if a.Service.Accepts != nil && len(awaits) == 0 {
		spec.Accepts = []workloads.Sample{workloads.Sample(*a.Service.Accepts)}
	}
	return a.Steps.Spec(func(kubeconfig string) probe.Spec {
		full := spec
		full.Kubeconfig = kubeconfig
		return &full
	})
}

// values returns the values of the chart, the part that Slipway sets, and the checksum of the values that are known when the program
// starts. If an engine owns the service, Git's values are not in the checksum: it rolls them out, at any time.
func (a *Args) values() (all, own map[string]any, checksum string, err error) {
	all, own, err = a.Service.Trees()
	if err != nil {
		return nil, nil, "", err
	}
	var known any = all
	if len(a.Service.UserValues) == 0 || a.Service.Owner.IsEngine() {
		known = a.Service.Values
	}
	text, err := json.Marshal(known)
	if err != nil {
		return nil, nil, "", err
	}
	sum := sha256.Sum256(text)
	if a.Reads != nil {
		path := append(strings.Split(a.PodAnnotations, "."), cluster.AnnotationReads)
		cluster.SetValue(all, a.Reads, path...)
		cluster.SetValue(own, a.Reads, path...)
	}
	return all, own, hex.EncodeToString(sum[:]), nil
}
