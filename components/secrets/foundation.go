// Package secrets puts the first secrets into a cluster: what everything after them needs to fetch its own.
package secrets

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/component"
)

// typeSecretsFoundation is part of the state: a rename needs Aliases.
const typeSecretsFoundation = "slipway:secrets:SecretsFoundation"

// SecretsFoundationArgs name the secrets. Each kind is a field of its own, a pointer whose nil means "none". Each kind has a
// file with its type, its resources, and the leaves that it adds.
type SecretsFoundationArgs struct {
	component.InCluster

	Git *GitCredentials // what Flux fetches its repository with
}

// SecretsFoundation is the Secrets that everything after it starts from.
type SecretsFoundation struct {
	pulumi.ResourceState

	leaves []pulumi.Resource
}

// NewSecretsFoundation creates the namespaces and Secrets of every kind that is asked for. What is secret is secret in the
// state, and in plain text only in the cluster.
func NewSecretsFoundation(ctx *pulumi.Context, name string, args *SecretsFoundationArgs, opts ...pulumi.ResourceOption) (*SecretsFoundation, error) {
	s := &SecretsFoundation{}
	if err := component.Register(ctx, typeSecretsFoundation, name, args.validate(), nil, s, opts...); err != nil {
		return nil, err
	}
	if args.Git != nil {
		if err := s.provideGit(ctx, name, args.Git, args.Child(s)); err != nil {
			return nil, err
		}
	}
	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{})
}

// Leaves are what others wait for.
func (s *SecretsFoundation) Leaves() []pulumi.Resource { return slices.Clone(s.leaves) }

func (a *SecretsFoundationArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass SecretsFoundationArgs")
	}
	problems := []error{a.InCluster.Validate()}
	if git := a.Git; git != nil && (git.Namespace == "" || git.Name == "" || git.Username == "" || !git.Password.IsSet()) {
		problems = append(problems, errors.New("git: is incomplete; give namespace, name, username and password"))
	}
	return errors.Join(problems...)
}
