// Package secrets creates the first Secrets of a cluster: what Flux needs to fetch everything else, and to decrypt it. It also installs
// the declared providers of secrets.
package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/service"
)

// typeSecretsFoundation is part of the state: a rename needs Aliases.
const typeSecretsFoundation = "slipway:secrets:SecretsFoundation"

// SecretsFoundationArgs are the arguments of a SecretsFoundation.
type SecretsFoundationArgs struct {
	component.InCluster
	component.Steps // required with a provider

	Namespace *v1.Namespace // the engine's; Flux's is of NewNamespace; required

	Flux      *Flux      // what Flux needs before it starts; nil means nothing
	ArgoCD    *ArgoCD    // what Argo CD needs before it starts; nil means nothing
	Providers []Provider // providers of secrets; optional

	Services []pulumi.Resource                 // what the providers' pods need, such as the cluster's DNS; optional
	InGit    func(release string) *cluster.Git // what the repository declares of a provider; nil means nothing of any
	Timeout  time.Duration                     // longest wait for the pods of a provider, and for its first secret; required with a provider
}

// Provider is a provider of secrets, such as SealedSecrets. Each has a file with its type, its resources and its leaves.
type Provider interface {
	validate() error
	provide(ctx *pulumi.Context, name string, s *SecretsFoundation, args *SecretsFoundationArgs) error
}

// SecretsFoundation is the set of Secrets that must exist before Flux starts.
type SecretsFoundation struct {
	pulumi.ResourceState

	Flux cluster.FluxSecrets // the Secrets that Flux needs

	// SealedSecretsCert is the certificate that kubeseal seals with, PEM; nil without the provider.
	SealedSecretsCert pulumi.StringInput

	leaves []pulumi.Resource
}

// NewNamespace creates Flux's namespace. It comes early: what Flux owns gets its values there before a gate waits for their effect. before
// is an option of the namespace, which may be there without Flux, and stays when another engine takes over: objects of the tree may be in
// it. The name is that of the SecretsFoundation.
func NewNamespace(ctx *pulumi.Context, name string, in component.InCluster, before pulumi.ResourceOption) (*v1.Namespace, error) {
	// The names are part of the state. It has been the component's child.
	former := pulumi.Aliases([]pulumi.Alias{{ParentURN: component.URN(ctx, typeSecretsFoundation, name)}})
	return v1.NewNamespace(ctx, name+"-git-namespace", &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(cluster.FluxNamespace)},
	}, in.Child(nil, former, before, pulumi.RetainOnDelete(true)))
}

// NewSecretsFoundation creates the Secrets of every kind in the arguments. Their values are secret in the state;
// only the cluster has them in plain text.
func NewSecretsFoundation(
	ctx *pulumi.Context, name string, args *SecretsFoundationArgs, opts ...pulumi.ResourceOption,
) (*SecretsFoundation, error) {
	s := &SecretsFoundation{}
	if err := component.Register(ctx, typeSecretsFoundation, name, args.validate(), nil, s, opts...); err != nil {
		return nil, err
	}
	namespace := args.Namespace.Metadata.Name().Elem()
	after := func(before pulumi.ResourceOption) pulumi.ResourceOption {
		if before == nil {
			return args.Child(s)
		}
		return args.Child(s, before)
	}
	s.leaves = append(s.leaves, args.Namespace)
	if args.Flux != nil {
		if err := s.provideFlux(ctx, name, namespace, args.Flux, after(args.Flux.Before)); err != nil {
			return nil, err
		}
	}
	if args.ArgoCD != nil {
		if err := s.provideArgoCD(ctx, name, namespace, args.ArgoCD, after(args.ArgoCD.Before)); err != nil {
			return nil, err
		}
	}
	for _, provider := range args.Providers {
		if err := provider.provide(ctx, name, s, args); err != nil {
			return nil, component.Failed(typeSecretsFoundation, name, err)
		}
	}
	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{})
}

// Leaves returns the resources that others wait for: the namespace, the Secrets, and the probes of the providers.
func (s *SecretsFoundation) Leaves() []pulumi.Resource { return slices.Clone(s.leaves) }

// install installs a provider's service and returns its probe.
func (s *SecretsFoundation) install(
	ctx *pulumi.Context, name string, args *SecretsFoundationArgs, in *service.Args,
) (pulumi.Resource, error) {
	in.InCluster, in.Steps, in.Timeout = args.InCluster, args.Steps, args.Timeout
	if args.InGit != nil {
		in.Git = args.InGit(in.Service.Name)
	}
	return service.Install(ctx, name, in, s)
}

// firstSecret is a Secret that the component creates.
type firstSecret struct {
	suffix, name string // of the resource; of the Secret
	kind         string // type of the Secret; "" means Opaque
	labels       pulumi.StringMap
	data         pulumi.StringMap // encoded
}

// secret registers a Secret in a namespace.
func (s *SecretsFoundation) secret(
	ctx *pulumi.Context, name string, namespace pulumi.StringPtrInput, one firstSecret, opts pulumi.ResourceOption,
) (pulumi.Resource, error) {
	meta := metav1.ObjectMetaArgs{Name: pulumi.String(one.name), Namespace: namespace, Annotations: component.Owned(nil)}
	if one.labels != nil {
		meta.Labels = one.labels
	}
	// data instead of stringData: the API server returns data, so that a refresh finds no difference.
	args := &v1.SecretArgs{Metadata: meta, Data: one.data}
	if one.kind != "" {
		args.Type = pulumi.String(one.kind)
	}
	secret, err := v1.NewSecret(ctx, name+one.suffix, args, opts)
	if err != nil {
		return nil, err
	}
	s.leaves = append(s.leaves, secret)
	return secret, nil
}

func (a *SecretsFoundationArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; pass SecretsFoundationArgs")
	}
	problems := []error{a.InCluster.Validate()}
	if a.Namespace == nil {
		problems = append(problems, errors.New("namespace: is missing; pass NewNamespace's"))
	}
	if a.Flux != nil && incomplete(a.Flux.GitOps, a.Flux.Access) {
		problems = append(problems, errors.New("flux: is incomplete; pass the cluster's section gitops and the secrets of its access"))
	}
	if a.ArgoCD != nil && incomplete(a.ArgoCD.GitOps, a.ArgoCD.Access) {
		problems = append(problems, errors.New("argoCD: is incomplete; pass the cluster's section gitops and the secrets of its access"))
	}
	for _, provider := range a.Providers {
		problems = append(problems, provider.validate())
	}
	if len(a.Providers) > 0 {
		problems = append(problems, a.Steps.Validate())
		if a.Timeout <= 0 {
			problems = append(problems, fmt.Errorf("timeout: %s is not a wait; pass a duration such as 10m", a.Timeout))
		}
	}
	return errors.Join(problems...)
}

// incomplete reports whether the source of an engine, or a secret that the access to it needs, is missing.
func incomplete(git cluster.GitOps, access []cluster.SourceSecret) bool {
	needed := (cluster.Secrets{}).OfSource(git.Access())
	given := slices.EqualFunc(needed, access, func(a, b cluster.SourceSecret) bool { return a.Key == b.Key && b.Secret.IsSet() })
	return !given || git.Source().URL == ""
}

func plain(text string) pulumi.StringInput {
	return pulumi.String(base64.StdEncoding.EncodeToString([]byte(text)))
}

// hidden returns an encoded secret, which stays secret in the state.
func hidden(secret cluster.Secret) pulumi.StringOutput {
	return pulumi.ToSecret(plain(secret.Reveal())).(pulumi.StringOutput)
}
