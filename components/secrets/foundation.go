// Package secrets puts the first secrets into a cluster, those that everything after it needs to get its own.
package secrets

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// typeSecretsFoundation is recorded in state; renaming it takes an alias.
const typeSecretsFoundation = "slipway:secrets:SecretsFoundation"

// SecretsFoundationArgs name the secrets. Each kind is a field of its own, a pointer whose nil means "not this one";
// each kind's file holds its type, the check of its shape and the resources it becomes, and adds its leaves to those
// that others wait for.
type SecretsFoundationArgs struct {
	Git *GitCredentials // what Flux fetches its repository with

	KubernetesProvider pulumi.ProviderResource // required

	// DependsOn must be there before the first secret is: the readiness gate's probe.
	DependsOn []pulumi.Resource
	// DeletedWith takes the objects along when it is deleted, so that destroy needs no answering API; optional.
	DeletedWith pulumi.Resource
}

// SecretsFoundation is in place once all of its leaves are.
type SecretsFoundation struct {
	pulumi.ResourceState

	leaves []pulumi.Resource
}

// NewSecretsFoundation creates the namespaces and Secrets of every kind that is asked for, once their shapes are known
// to be right. What is secret is secret in state, and in no other place but the cluster.
func NewSecretsFoundation(ctx *pulumi.Context, name string, args *SecretsFoundationArgs, opts ...pulumi.ResourceOption) (*SecretsFoundation, error) {
	if err := args.validate(); err != nil {
		return nil, fmt.Errorf("SecretsFoundation %q: %w", name, err)
	}
	s := &SecretsFoundation{}
	if err := ctx.RegisterComponentResource(typeSecretsFoundation, name, s, opts...); err != nil {
		return nil, err
	}
	if args.Git != nil {
		if err := s.provideGit(ctx, name, args.Git, args.childOptions(s)); err != nil {
			return nil, err
		}
	}
	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{})
}

// Leaves are what others wait for.
func (s *SecretsFoundation) Leaves() []pulumi.Resource { return slices.Clone(s.leaves) }

func (a *SecretsFoundationArgs) validate() error {
	if a == nil {
		return errors.New("args: missing; give SecretsFoundationArgs")
	}
	var problems []error
	if a.Git != nil {
		problems = append(problems, a.Git.Validate())
	}
	if a.KubernetesProvider == nil {
		problems = append(problems, errors.New("kubernetesProvider: missing; give the provider of the cluster"))
	}
	return errors.Join(problems...)
}

func (a *SecretsFoundationArgs) childOptions(parent pulumi.Resource) pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{
		pulumi.Parent(parent), pulumi.Provider(a.KubernetesProvider), pulumi.DependsOn(a.DependsOn),
	}
	if a.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(a.DeletedWith))
	}
	return pulumi.Composite(opts...)
}
