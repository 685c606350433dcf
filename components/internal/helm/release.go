// Package helm registers Helm releases without the Kubernetes SDK's own helm packages.
//
// An import of kubernetes/helm/v3 adds all Kubernetes kinds to the program: each cold compilation takes minutes of CPU and
// gigabytes of memory. A release is one resource, kubernetes:helm.sh/v3:Release. This package registers it with the same token,
// input names and plugin, so that the SDK's type could use the same state.
package helm

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/utilities"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// typeRelease is the provider's type token; it is part of the state.
const typeRelease = "kubernetes:helm.sh/v3:Release"

// timeout is the longest wait for one Kubernetes operation, such as a chart's hook.
const timeout = 5 * time.Minute

// ReleaseArgs are the arguments of a release.
type ReleaseArgs struct {
	// Service is the release, with its chart and its owner; required. If an engine owns it, Pulumi installs it on a new cluster, and never
	// changes or removes it afterwards. Chart, version and values are those that Git declares then. The engine gets the values Own by
	// OwnedValues.
	Service cluster.Service

	// Values are those of the chart, with the user's; none means the chart's own. Own is the part that Slipway sets. In both, a value may be
	// an input of Pulumi, and secrets stay secret in the state.
	Values, Own map[string]any

	// Kubeconfig is the cluster's kubeconfig, YAML. With it, the record that an interrupted run has left of this release is removed
	// before the installation. With nil, remove such a record by hand.
	Kubeconfig pulumi.StringInput

	OwnedValues *component.OwnedValues // nil means that no engine is there, which may come later

	// Git is what the repository declares of the release; nil means nothing. A preview compares it with what Pulumi has installed, before
	// the owner changes.
	Git *cluster.Git
	// Renderer is a Kubernetes provider that renders charts for this comparison; nil means that values are compared, not objects.
	Renderer pulumi.ProviderResource
}

// ownedBy is the description of a release that an engine owns, before the engine's name. By this input, a preview shows a change of the
// owner, and the provider upgrades the release for it: the last time before the engine takes over, with what Pulumi installed last, and the
// first time after Pulumi takes the release back.
const ownedBy = "owned by "

func (a *ReleaseArgs) ofEngine() bool { return a.Service.Owner.IsEngine() }

// engineChanges are the inputs that Pulumi ignores while an engine owns a release: all but its name, namespace and description.
var engineChanges = []string{"chart", "repositoryOpts", "skipAwait", "timeout", "values", "version"}

// Release is an installed Helm release.
type Release struct {
	pulumi.CustomResourceState

	Name      pulumi.StringOutput `pulumi:"name"`
	Namespace pulumi.StringOutput `pulumi:"namespace"`
	Version   pulumi.StringOutput `pulumi:"version"`

	leaves []pulumi.Resource
}

// Leaves returns the resources that others wait for: the release and, if an engine owns it, the Secret with the values that Slipway sets.
func (r *Release) Leaves() []pulumi.Resource { return slices.Clone(r.leaves) }

// NewRelease registers a release. It is complete once its objects are applied; a gate or a probe checks the pods, and names pods that do
// not run. The opts must contain the Kubernetes provider, or a parent with it.
func NewRelease(ctx *pulumi.Context, name string, args *ReleaseArgs, opts ...pulumi.ResourceOption) (*Release, error) {
	service := args.Service
	inputs := pulumi.Map{
		"name":      pulumi.String(service.Name),
		"namespace": pulumi.String(service.Namespace),
		"chart":     pulumi.String(service.Chart),
		"version":   pulumi.String(service.Version),
		"skipAwait": pulumi.Bool(true),
		"timeout":   pulumi.Int(int(timeout / time.Second)),
		// The SDK's own type sends this constant; the provider has two kinds of Release, which differ by it.
		"compat": pulumi.String("true"),
	}
	if service.Repository != "" {
		inputs["repositoryOpts"] = pulumi.Map{"repo": pulumi.String(service.Repository)}
	}
	if len(args.Values) > 0 {
		inputs["values"] = toMap(args.Values)
	}
	own := []pulumi.ResourceOption{}
	if args.ofEngine() {
		inputs["description"] = pulumi.String(ownedBy + service.Owner.Title())
		own = append(own, pulumi.RetainOnDelete(true), pulumi.IgnoreChanges(engineChanges))
	}
	hooks, err := args.hooks(ctx, name)
	if err != nil {
		return nil, err
	}
	own = append(own, hooks)
	release := &Release{}
	// The SDK's default options set the version of the plugin that the SDK belongs to.
	all := utilities.PkgResourceDefaultOpts(slices.Concat(opts, own))
	if err := ctx.RegisterResource(typeRelease, name, inputs, release, all...); err != nil {
		return nil, err
	}
	release.leaves = []pulumi.Resource{release}
	if args.ofEngine() && args.OwnedValues != nil {
		values, err := args.NewValues(ctx, slices.Concat(opts, []pulumi.ResourceOption{pulumi.DependsOn(release.leaves)})...)
		if err != nil {
			return nil, err
		}
		release.leaves = append(release.leaves, values)
	}
	return release, nil
}

// NewValues registers the Secret with the values that Slipway sets in the chart of a release that an engine owns. Its HelmRelease reads it,
// and the engine rolls out a changed value at once. What verifies the release waits for it: the effect of a change comes by no other way.
func (a *ReleaseArgs) NewValues(ctx *pulumi.Context, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
	text := toMap(a.Own).ToMapOutput().ApplyT(func(values map[string]any) (string, error) {
		written, err := json.Marshal(values) // JSON is YAML, too
		return base64.StdEncoding.EncodeToString(written), err
	}).(pulumi.StringOutput)
	name := a.OwnedValues.Prefix + a.Service.Name
	tried, err := a.tries(ctx, name)
	if err != nil {
		return nil, err
	}
	return v1.NewSecret(ctx, name, &v1.SecretArgs{
		Metadata: metav1.ObjectMetaArgs{
			Name: pulumi.String(cluster.ValuesSecret(a.Service.Name)), Namespace: pulumi.String(a.OwnedValues.Namespace),
			Labels: a.OwnedValues.Labels, Annotations: component.Owned(nil),
		},
		// data instead of stringData: the API server returns data, so that a refresh finds no difference.
		Data: pulumi.StringMap{cluster.ValuesKey: pulumi.ToSecret(text).(pulumi.StringOutput)},
		// With the owner, the Secret goes, also where the release stays.
	}, slices.Concat(opts, []pulumi.ResourceOption{pulumi.RetainOnDelete(false), a.OwnedValues.Options, tried})...)
}

// toMap converts a tree to inputs leaf by leaf, so that a preview hides only the leaves that are secret or unknown.
func toMap(tree map[string]any) pulumi.Map {
	inputs := pulumi.Map{}
	for key, value := range tree {
		inputs[key] = toInput(value)
	}
	return inputs
}

func toInput(value any) pulumi.Input {
	switch value := value.(type) {
	case pulumi.Input:
		return value
	case map[string]any:
		return toMap(value)
	case []any:
		inputs := pulumi.Array{}
		for _, element := range value {
			inputs = append(inputs, toInput(element))
		}
		return inputs
	}
	return pulumi.Any(value)
}
