package secrets_test

import (
	"encoding/base64"
	"testing"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/internal/component"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const password = "correct-horse-battery-staple"

func run(rec *mocks.Recorder, mutate func(*secrets.SecretsFoundationArgs)) error {
	return rec.Run(func(ctx *pulumi.Context) error {
		kube, err := kubernetes.NewProvider(ctx, "kube", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		// Any custom resource can represent the gate's probe and the bootstrap.
		gate, err := kubernetes.NewProvider(ctx, "gate", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		args := &secrets.SecretsFoundationArgs{
			InCluster: component.InCluster{
				Lifetime:           component.Lifetime{DependsOn: []pulumi.Resource{gate}, DeletedWith: gate},
				KubernetesProvider: kube,
			},
			Git: &secrets.GitCredentials{
				Namespace: "flux-system", Name: "flux-system", Username: "flux", Password: cluster.NewSecret(password),
			},
		}
		if mutate != nil {
			mutate(args)
		}
		foundation, err := secrets.NewSecretsFoundation(ctx, "infra-secrets", args)
		if err != nil {
			return err
		}
		_, err = kubernetes.NewProvider(ctx, "next", &kubernetes.ProviderArgs{}, pulumi.DependsOn(foundation.Leaves()))
		return err
	})
}

func TestSecretsFoundation_CreatesFluxsGitCredentialsAfterTheGate(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, nil))
	namespace, secret := rec.Resource(t, "infra-secrets-git-namespace"), rec.Resource(t, "infra-secrets-git")
	assert.Equal(t, "flux-system", namespace.Input("metadata.name"))
	assert.Equal(t, "flux-system", secret.Input("metadata.name"))
	assert.Equal(t, "flux-system", secret.Input("metadata.namespace"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("flux")), secret.Input("data.username"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte(password)), secret.Input("data.password"))
	assert.True(t, secret.SecretInput("data.password"))
	assert.Contains(t, secret.AdditionalSecretOutputs, "data")

	gate := rec.Resource(t, "gate")
	for _, reg := range []mocks.Registration{namespace, secret} {
		assert.Contains(t, reg.Dependencies, gate.URN)
		assert.Equal(t, gate.URN, reg.DeletedWith)
		assert.Equal(t, rec.Resource(t, "kube").URN, reg.ProviderURN())
	}
	assert.True(t, rec.After(secret, namespace))
	assert.Subset(t, rec.Resource(t, "next").Dependencies, []string{namespace.URN, secret.URN})
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths(password), reg.Name)
		assert.Empty(t, reg.PlainPaths(base64.StdEncoding.EncodeToString([]byte(password))), reg.Name)
	}
}

func TestSecretsFoundation_CreatesOnlyTheGivenKinds(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, func(a *secrets.SecretsFoundationArgs) { a.Git = nil }))
	assert.Len(t, rec.Resources(), 4, "three providers and the component: %v", rec.Names())
}

func TestSecretsFoundation_RejectsArgsBeforeAnythingIsCreatedAndShowsNoSecret(t *testing.T) {
	for name, test := range map[string]struct {
		problem string
		mutate  func(*secrets.SecretsFoundationArgs)
	}{
		"no Git namespace":       {"git: is incomplete", func(a *secrets.SecretsFoundationArgs) { a.Git.Namespace = "" }},
		"no Git name":            {"git: is incomplete", func(a *secrets.SecretsFoundationArgs) { a.Git.Name = "" }},
		"no Git username":        {"git: is incomplete", func(a *secrets.SecretsFoundationArgs) { a.Git.Username = "" }},
		"no Git password":        {"git: is incomplete", func(a *secrets.SecretsFoundationArgs) { a.Git.Password = cluster.Secret{} }},
		"no Kubernetes provider": {"kubernetesProvider: is missing", func(a *secrets.SecretsFoundationArgs) { a.KubernetesProvider = nil }},
		"no bootstrap":           {"deletedWith: is missing", func(a *secrets.SecretsFoundationArgs) { a.DeletedWith = nil }},
		"nothing": {`SecretsFoundation "infra-secrets"`, func(a *secrets.SecretsFoundationArgs) {
			*a = secrets.SecretsFoundationArgs{}
		}},
	} {
		rec := &mocks.Recorder{}
		err := run(rec, test.mutate)
		require.ErrorContains(t, err, test.problem, name)
		assert.NotContains(t, err.Error(), password, name)
		assert.Empty(t, rec.OfType("slipway:secrets:SecretsFoundation"), name)
	}
}
