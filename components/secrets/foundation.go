// Package secrets creates the first Secrets of a cluster: what Flux needs to fetch everything else, and to decrypt it.
package secrets

import (
	"encoding/base64"
	"errors"
	"slices"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/component"
)

// typeSecretsFoundation is part of the state: a rename needs Aliases.
const typeSecretsFoundation = "slipway:secrets:SecretsFoundation"

// SecretsFoundationArgs are the arguments of a SecretsFoundation. Each kind of secret has a field, a pointer whose nil means
// "none". Each kind has a file with its type, its resources, and the leaves that it adds.
type SecretsFoundationArgs struct {
	component.InCluster

	Namespace string          // Flux's namespace, which this component creates, with the Secrets in it; required
	Git       *GitCredentials // Flux's access to its repository
	Age       *AgeKeys        // keys with which Flux decrypts what SOPS has encrypted
}

// SecretsFoundation is the set of Secrets that must exist before Flux starts.
type SecretsFoundation struct {
	pulumi.ResourceState

	GitSecret string // name of the Secret with Flux's access to its repository; "" if Flux needs none
	AgeSecret string // name of the Secret with the keys of age; "" if there is none

	leaves []pulumi.Resource
}

// NewSecretsFoundation creates the namespace and the Secrets of every kind in the arguments. Their values are secret in the state;
// only the cluster has them in plain text.
func NewSecretsFoundation(
	ctx *pulumi.Context, name string, args *SecretsFoundationArgs, opts ...pulumi.ResourceOption,
) (*SecretsFoundation, error) {
	s := &SecretsFoundation{}
	if err := component.Register(ctx, typeSecretsFoundation, name, args.validate(), nil, s, opts...); err != nil {
		return nil, err
	}
	children := args.Child(s)
	// The name is part of the state.
	namespace, err := v1.NewNamespace(ctx, name+"-git-namespace", &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(args.Namespace)},
	}, children)
	if err != nil {
		return nil, err
	}
	s.leaves = append(s.leaves, namespace)
	for _, provide := range []func(*pulumi.Context, string, *v1.Namespace, *SecretsFoundationArgs, pulumi.ResourceOption) error{
		s.provideGit, s.provideAge,
	} {
		if err := provide(ctx, name, namespace, args, children); err != nil {
			return nil, err
		}
	}
	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{})
}

// Leaves returns the resources that others wait for: the namespace and the Secrets.
func (s *SecretsFoundation) Leaves() []pulumi.Resource { return slices.Clone(s.leaves) }

// provide registers a Secret in the namespace. Its data are encoded already.
func (s *SecretsFoundation) provide(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, meta metav1.ObjectMetaArgs, data pulumi.StringMap,
	opts pulumi.ResourceOption,
) error {
	meta.Namespace = namespace.Metadata.Name().Elem()
	// data instead of stringData: the API server returns data, so that a refresh finds no difference.
	secret, err := v1.NewSecret(ctx, name, &v1.SecretArgs{Metadata: meta, Data: data}, opts)
	if err != nil {
		return err
	}
	s.leaves = append(s.leaves, secret)
	return nil
}

func (a *SecretsFoundationArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass SecretsFoundationArgs")
	}
	problems := []error{a.InCluster.Validate()}
	if a.Namespace == "" {
		problems = append(problems, errors.New("namespace: is missing; give Flux's"))
	}
	if git := a.Git; git != nil && git.incomplete() {
		problems = append(problems, errors.New("git: is incomplete; pass the cluster's section gitops and its secrets"))
	}
	if a.Age != nil && !a.Age.Keys.IsSet() {
		problems = append(problems, errors.New("age: is incomplete; give the keys"))
	}
	return errors.Join(problems...)
}

func plain(text string) pulumi.StringInput { return pulumi.String(encode(text)) }

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
