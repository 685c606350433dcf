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
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/components/internal/service"
)

// typeSecretsFoundation is part of the state: a rename needs Aliases.
const typeSecretsFoundation = "slipway:secrets:SecretsFoundation"

// SecretsFoundationArgs are the arguments of a SecretsFoundation. Each kind of secret has a field, a pointer whose nil means
// "none". Each kind has a file with its type, its resources, and the leaves that it adds.
type SecretsFoundationArgs struct {
	component.InCluster
	component.Steps // required with a provider

	Namespace     string          // Flux's namespace, which this component creates, with the Secrets in it; required
	Git           *GitCredentials // Flux's access to its source
	Age           *AgeKeys        // keys with which Flux decrypts what SOPS has encrypted
	SealedSecrets *SealedSecrets  // provider
	OnePassword   *OnePassword    // provider

	BeforeFlux pulumi.ResourceOption // option of what is Flux's: the namespace, which may be there without Flux, and the Secrets; optional

	Services []pulumi.Resource                 // what the providers' pods need, such as the cluster's DNS; optional
	InGit    func(release string) *cluster.Git // what the repository declares of a provider; nil means nothing of any
	Timeout  time.Duration                     // longest wait for the pods of a provider, and for its first secret; required with a provider
}

// SecretsFoundation is the set of Secrets that must exist before Flux starts.
type SecretsFoundation struct {
	pulumi.ResourceState

	GitSecret    string // name of the Secret with Flux's access to its source; "" if Flux needs none
	CASecret     string // name of the Secret with the CA of a registry or bucket; "" if there is none
	ImagesSecret string // name of the Secret with the login for the images of Flux's controllers; "" if there is none
	AgeSecret    string // name of the Secret with the keys of age; "" if there is none

	Owned []helm.Owned // the providers that Flux owns

	// SealedSecretsCert is the certificate that kubeseal seals with, PEM; nil without the provider.
	SealedSecretsCert pulumi.StringInput

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
	flux := children
	if args.BeforeFlux != nil {
		flux = pulumi.Composite(children, args.BeforeFlux)
	}
	// The name is part of the state.
	namespace, err := v1.NewNamespace(ctx, name+"-git-namespace", &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(args.Namespace)},
	}, flux)
	if err != nil {
		return nil, err
	}
	s.leaves = append(s.leaves, namespace)
	for _, provide := range []func(*pulumi.Context, string, *v1.Namespace, *SecretsFoundationArgs, pulumi.ResourceOption) error{
		s.provideGit, s.provideAge,
	} {
		if err := provide(ctx, name, namespace, args, flux); err != nil {
			return nil, err
		}
	}
	for _, provide := range []func(*pulumi.Context, string, *SecretsFoundationArgs) error{s.provideSealedSecrets, s.provideOnePassword} {
		if err := provide(ctx, name, args); err != nil {
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
	installed, err := service.Install(ctx, name, in, s)
	if err != nil {
		return nil, err
	}
	s.Owned = append(s.Owned, installed.Owned...)
	return installed.Probe, nil
}

// provide registers a Secret in the namespace. Its data are encoded already.
func (s *SecretsFoundation) provide(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, meta metav1.ObjectMetaArgs, data pulumi.StringMap,
	opts pulumi.ResourceOption,
) error {
	_, err := s.secret(ctx, name, namespace, meta, data, opts)
	return err
}

// secret is like provide, and returns the Secret.
func (s *SecretsFoundation) secret(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, meta metav1.ObjectMetaArgs, data pulumi.StringMap,
	opts pulumi.ResourceOption,
) (pulumi.Resource, error) {
	return s.typedSecret(ctx, name, namespace, "", meta, data, opts)
}

// typedSecret is like secret, with a type of Secret; "" means Opaque.
func (s *SecretsFoundation) typedSecret(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, kind string, meta metav1.ObjectMetaArgs, data pulumi.StringMap,
	opts pulumi.ResourceOption,
) (pulumi.Resource, error) {
	meta.Namespace = namespace.Metadata.Name().Elem()
	// data instead of stringData: the API server returns data, so that a refresh finds no difference.
	args := &v1.SecretArgs{Metadata: meta, Data: data}
	if kind != "" {
		args.Type = pulumi.String(kind)
	}
	secret, err := v1.NewSecret(ctx, name, args, opts)
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
	if a.Namespace == "" {
		problems = append(problems, errors.New("namespace: is missing; give Flux's"))
	}
	if git := a.Git; git != nil && git.incomplete() {
		problems = append(problems, errors.New("git: is incomplete; pass the cluster's section gitops and its secrets"))
	}
	if a.Age != nil && !a.Age.Keys.IsSet() {
		problems = append(problems, errors.New("age: is incomplete; give the keys"))
	}
	if a.SealedSecrets != nil {
		problems = append(problems, a.SealedSecrets.validate())
	}
	if one := a.OnePassword; one != nil && (len(one.Settings.Vaults) == 0 || !one.Credentials.IsSet() || !one.Token.IsSet()) {
		problems = append(problems, errors.New("onePassword: is incomplete; give the section, the credentials and the token"))
	}
	if a.SealedSecrets != nil || a.OnePassword != nil {
		problems = append(problems, a.Steps.Validate())
		if a.Timeout <= 0 {
			problems = append(problems, fmt.Errorf("timeout: %s is not a wait; pass a duration such as 10m", a.Timeout))
		}
	}
	return errors.Join(problems...)
}

func plain(text string) pulumi.StringInput { return pulumi.String(encode(text)) }

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// hidden returns an encoded secret, which stays secret in the state.
func hidden(secret cluster.Secret) pulumi.StringOutput {
	return pulumi.ToSecret(plain(secret.Reveal())).(pulumi.StringOutput)
}
