package secrets_test

import (
	"encoding/base64"
	"testing"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const password = "correct-horse-battery-staple"

func run(rec *mocks.Recorder, mutate func(*secrets.SecretsFoundationArgs)) error {
	return rec.Run(func(ctx *pulumi.Context) error {
		kube, err := kubernetes.NewProvider(ctx, "kube", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		// Any custom resource can stand for the gate's probe and the bootstrap.
		gate, err := kubernetes.NewProvider(ctx, "gate", &kubernetes.ProviderArgs{})
		if err != nil {
			return err
		}
		args := &secrets.SecretsFoundationArgs{
			Git:                &secrets.GitCredentials{Namespace: "flux-system", Name: "flux-system", Username: "flux", Password: password},
			KubernetesProvider: kube, DependsOn: []pulumi.Resource{gate}, DeletedWith: gate,
		}
		if mutate != nil {
			mutate(args)
		}
		_, err = secrets.NewSecretsFoundation(ctx, "infra-secrets", args)
		return err
	})
}

func TestSecretsFoundation_GivesFluxItsGitCredentialsAfterTheGate(t *testing.T) {
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
	for _, reg := range rec.Resources() {
		assert.Empty(t, reg.PlainPaths(password), reg.Name)
		assert.Empty(t, reg.PlainPaths(base64.StdEncoding.EncodeToString([]byte(password))), reg.Name)
	}
}

func TestSecretsFoundation_MakesOnlyWhatIsAskedFor(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, func(a *secrets.SecretsFoundationArgs) { a.Git = nil }))
	assert.Len(t, rec.Resources(), 3, "two providers and the component: %v", rec.Names())
}

func TestSecretsFoundation_RejectsShapesBeforeAnythingIsCreatedAndShowsNoSecret(t *testing.T) {
	for problem, mutate := range map[string]func(*secrets.SecretsFoundationArgs){
		"git.namespace: missing":            func(a *secrets.SecretsFoundationArgs) { a.Git.Namespace = "" },
		"git.name: missing":                 func(a *secrets.SecretsFoundationArgs) { a.Git.Name = "" },
		"git.username: missing":             func(a *secrets.SecretsFoundationArgs) { a.Git.Username = "" },
		"git.username: \"a:b\" has":         func(a *secrets.SecretsFoundationArgs) { a.Git.Username = "a:b" },
		"git.password: missing":             func(a *secrets.SecretsFoundationArgs) { a.Git.Password = "" },
		"git.password: begins or ends":      func(a *secrets.SecretsFoundationArgs) { a.Git.Password = password + "\n" },
		"git.password: has a line break":    func(a *secrets.SecretsFoundationArgs) { a.Git.Password = password + "\n" + password },
		"git.password: is a URL":            func(a *secrets.SecretsFoundationArgs) { a.Git.Password = "https://flux:" + password + "@git" },
		"kubernetesProvider: missing":       func(a *secrets.SecretsFoundationArgs) { a.KubernetesProvider = nil },
		`SecretsFoundation "infra-secrets"`: func(a *secrets.SecretsFoundationArgs) { *a = secrets.SecretsFoundationArgs{} },
	} {
		rec := &mocks.Recorder{}
		err := run(rec, mutate)
		require.ErrorContains(t, err, problem)
		assert.NotContains(t, err.Error(), password)
		assert.Empty(t, rec.OfType("slipway:secrets:SecretsFoundation"), problem)
	}
}
