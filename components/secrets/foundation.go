// Package secrets creates the first Secrets of a cluster: the credentials that Flux needs to fetch everything else.
package secrets

import (
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/component"
)

// typeSecretsFoundation is part of the state: a rename needs Aliases.
const typeSecretsFoundation = "slipway:secrets:SecretsFoundation"

// SecretsFoundationArgs are the arguments of a SecretsFoundation. Each kind of secret has a field, a pointer whose nil means
// "none". Each kind has a file with its type, its resources, and the leaves that it adds.
type SecretsFoundationArgs struct {
	component.InCluster

	Git *GitCredentials // Flux's credentials for its repository
}

// SecretsFoundation is the set of Secrets that must exist before Flux starts.
type SecretsFoundation struct {
	pulumi.ResourceState

	leaves []pulumi.Resource
}

// NewSecretsFoundation creates the namespaces and Secrets of every kind in the arguments. Their values are secret in the state;
// only the cluster has them in plain text.
func NewSecretsFoundation(
	ctx *pulumi.Context, name string, args *SecretsFoundationArgs, opts ...pulumi.ResourceOption,
) (*SecretsFoundation, error) {
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

// Leaves returns the resources that others wait for: the Secrets.
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
