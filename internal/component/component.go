// Package component is what all components do in the same way: register themselves, and give their children options.
package component

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Register registers a component under its type token, such as slipway:core:CRDs, or returns the problems of its arguments.
// The token is part of the state: a rename needs Aliases. inputs are what a preview shows of the component.
func Register(ctx *pulumi.Context, token, name string, problems error, inputs pulumi.Map, c pulumi.ComponentResource, opts ...pulumi.ResourceOption) error {
	if problems != nil {
		return Failed(token, name, problems)
	}
	return ctx.RegisterComponentResourceV2(token, name, inputs, c, opts...)
}

// Failed names the component in an error.
func Failed(token, name string, err error) error {
	return fmt.Errorf("%s %q: %w", token[strings.LastIndex(token, ":")+1:], name, err)
}

// Child combines the options that every child of a component has with its own.
func Child(parent pulumi.Resource, provider pulumi.ProviderResource, own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return pulumi.Composite(pulumi.Parent(parent), pulumi.Provider(provider), pulumi.Composite(own...))
}

// InCluster is what every component needs that makes objects in the cluster.
type InCluster struct {
	Name       string             // the cluster's name, for reports; required
	Kubeconfig pulumi.StringInput // cluster-admin kubeconfig, YAML; secret; required

	KubernetesProvider pulumi.ProviderResource // required
	CommandProvider    pulumi.ProviderResource // required

	// DependsOn must be there before the first object is, by leaf.
	DependsOn []pulumi.Resource
	// DeletedWith is the resource that the objects end with, so that destroy needs no API that answers; required.
	DeletedWith pulumi.Resource
}

// Validate returns what is missing.
func (c InCluster) Validate() error {
	var problems []error
	for _, field := range []struct {
		path    string
		missing bool
		remedy  string
	}{
		{"name", c.Name == "", "give the cluster's name"},
		{"kubeconfig", c.Kubeconfig == nil, "pass TalosCluster's"},
		{"kubernetesProvider", c.KubernetesProvider == nil, "pass the provider of the cluster"},
		{"commandProvider", c.CommandProvider == nil, "pass an explicit provider"},
		{"deletedWith", c.DeletedWith == nil, "pass TalosCluster's Bootstrap"},
	} {
		if field.missing {
			problems = append(problems, fmt.Errorf("%s: is missing; %s", field.path, field.remedy))
		}
	}
	return errors.Join(problems...)
}

// Child combines the options of an object in the cluster with its own. It waits for DependsOn.
func (c InCluster) Child(parent pulumi.Resource, own ...pulumi.ResourceOption) pulumi.ResourceOption {
	return Child(parent, c.KubernetesProvider,
		pulumi.DependsOn(c.DependsOn), pulumi.DeletedWith(c.DeletedWith), pulumi.Composite(own...))
}
