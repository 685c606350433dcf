// Package component provides what all components share: their registration and the options of their children.
package component

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Register registers a component under its type token, such as slipway:core:CRDs, or returns the problems of its arguments.
// The token is part of the state: a rename needs Aliases. A preview shows the inputs.
func Register(
	ctx *pulumi.Context, token, name string, problems error, inputs pulumi.Map, c pulumi.ComponentResource,
	opts ...pulumi.ResourceOption,
) error {
	if problems != nil {
		return Failed(token, name, problems)
	}
	return ctx.RegisterComponentResourceV2(token, name, inputs, c, opts...)
}

// Failed adds the component's type and name to an error.
func Failed(token, name string, err error) error {
	return fmt.Errorf("%s %q: %w", token[strings.LastIndex(token, ":")+1:], name, err)
}

// Child combines the options of every child of a component with the child's own.
func Child(parent pulumi.Resource, provider pulumi.ProviderResource, own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return pulumi.Composite(pulumi.Parent(parent), pulumi.Provider(provider), pulumi.Composite(own...))
}

// URN returns the URN of a component that has no parent.
func URN(ctx *pulumi.Context, token, name string) pulumi.URN {
	return pulumi.URN(fmt.Sprintf("urn:pulumi:%s::%s::%s::%s", ctx.Stack(), ctx.Project(), token, name))
}

// Lifetime tells when the children of a component are created, and with what they are deleted.
type Lifetime struct {
	// DependsOn lists the leaves that must exist before the first child is created; optional.
	DependsOn []pulumi.Resource
	// DeletedWith is the resource whose deletion includes the children, so that a destroy needs no API that answers. After its replacement the
	// children are gone, and all are created again. Required.
	DeletedWith pulumi.Resource
}

// Validate returns an error for each missing argument.
func (l Lifetime) Validate() error {
	return missing("deletedWith", l.DeletedWith == nil, "pass the resource that stands for the cluster")
}

// InCluster holds the arguments of every component that creates objects in the cluster.
type InCluster struct {
	Lifetime

	KubernetesProvider pulumi.ProviderResource // required

	OwnedValues *OwnedValues // for the releases that the engine owns; nil if the stack does not hand over
}

// OwnedValues is where the engine reads the values that Slipway sets in the charts of the releases that it owns: one Secret for each.
type OwnedValues struct {
	Namespace string                // the engine's; required
	Labels    pulumi.StringMap      // of every such Secret; nil means none
	Prefix    string                // what the names of the resources begin with; required
	Options   pulumi.ResourceOption // of every such Secret, among them the dependency on the namespace; required
}

// Validate returns an error for each missing argument.
func (c InCluster) Validate() error {
	return errors.Join(
		missing("kubernetesProvider", c.KubernetesProvider == nil, "pass the provider of the cluster"), c.Lifetime.Validate())
}

// Child combines the options of every object in the cluster with the object's own. The object waits for DependsOn.
func (c InCluster) Child(parent pulumi.Resource, own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return Child(parent, c.KubernetesProvider, pulumi.DependsOn(c.DependsOn),
		pulumi.DeletedWith(c.DeletedWith), pulumi.ReplaceWith([]pulumi.Resource{c.DeletedWith}), pulumi.Composite(own...))
}

// Owned returns the annotations of an object whose fields Slipway writes, whoever wrote them before: own, and the one that says so to the
// provider. Each creation draws another name of a field manager (the provider's fieldManagerName). Who kills a run between an object's
// creation and its record in the state leaves the object with a manager that nobody is any more, and the API server refuses every later
// change as a conflict with it; even equal values conflict in a list that belongs to one manager as a whole, and into which the API server
// has filled defaults.
func Owned(own pulumi.StringMap) pulumi.StringMap {
	all := pulumi.StringMap{"pulumi.com/patchForce": pulumi.String("true")}
	maps.Copy(all, own)
	return all
}

// Steps holds the arguments of every component that runs slipway-probe in the cluster (package step).
type Steps struct {
	Name            string                  // name of the cluster, for reports; required
	Kubeconfig      pulumi.StringInput      // cluster-admin kubeconfig, YAML; secret; required
	CommandProvider pulumi.ProviderResource // required

	Skip cluster.SkippedNodes // nodes that are left out; none by default
}

// Target returns the target of a wait; without a kubeconfig, it is the public part.
func (s Steps) Target(kubeconfig string, timeout time.Duration) health.Target {
	return health.Target{Cluster: s.Name, Kubeconfig: kubeconfig, Timeout: probe.Duration(timeout), Skip: s.Skip}
}

// Spec returns the spec of a run with the kubeconfig, encoded for the run's standard input; secret.
func (s Steps) Spec(of func(kubeconfig string) probe.Spec) pulumi.StringOutput {
	return s.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) (string, error) {
		return probe.Encode(of(kubeconfig))
	}).(pulumi.StringOutput)
}

// Validate returns an error for each missing argument.
func (s Steps) Validate() error {
	return errors.Join(
		missing("name", s.Name == "", "give the cluster's name"),
		missing("kubeconfig", s.Kubeconfig == nil, "pass TalosCluster's"),
		missing("commandProvider", s.CommandProvider == nil, "pass an explicit provider"),
	)
}

// missing returns an error if an argument is missing.
func missing(path string, is bool, remedy string) error {
	if !is {
		return nil
	}
	return fmt.Errorf("%s: is missing; %s", path, remedy)
}

// Base64 returns a text in base64, as Kubernetes has it in the data of a Secret; secret if the text is.
func Base64(text pulumi.StringInput) pulumi.StringOutput {
	return text.ToStringOutput().ApplyT(func(text string) string {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}).(pulumi.StringOutput)
}

// Plain returns the value inside secrets and outputs.
func Plain(value resource.PropertyValue) resource.PropertyValue {
	for {
		switch {
		case value.IsSecret():
			value = value.SecretValue().Element
		case value.IsOutput():
			value = value.OutputValue().Element
		default:
			return value
		}
	}
}
