package secrets_test

import (
	"encoding/base64"
	"testing"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const password = "correct-horse-battery-staple"

// access is a source of Flux, with all secrets of a stack.
type access struct {
	GitOps  cluster.GitOps
	Secrets cluster.Secrets
}

func (a access) flux() *secrets.Flux {
	return &secrets.Flux{GitOps: a.GitOps, Access: a.Secrets.OfSource(a.GitOps.Access()), Images: a.Secrets.FluxRegistryConfig}
}

func run(rec *mocks.Recorder, mutate func(*secrets.SecretsFoundationArgs)) error {
	_, err := foundation(rec, mutate)
	return err
}

func foundation(
	rec *mocks.Recorder, mutate func(*secrets.SecretsFoundationArgs),
) (made *secrets.SecretsFoundation, err error) {
	err = rec.Run(func(ctx *pulumi.Context) error {
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
			Flux: access{
				GitOps:  cluster.GitOps{URL: "https://git.home.arpa/platform/slipway.git", Username: "flux"},
				Secrets: cluster.Secrets{GitPassword: cluster.NewSecret(password)},
			}.flux(),
		}
		if args.Namespace, err = secrets.NewNamespace(ctx, "infra-secrets", args.InCluster, pulumi.Composite()); err != nil {
			return err
		}
		if mutate != nil {
			mutate(args)
		}
		made, err = secrets.NewSecretsFoundation(ctx, "infra-secrets", args)
		if err != nil {
			return err
		}
		_, err = kubernetes.NewProvider(ctx, "next", &kubernetes.ProviderArgs{}, pulumi.DependsOn(made.Leaves()))
		return err
	})
	return made, err
}

func TestSecretsFoundation_CreatesFluxsGitCredentialsAfterTheGate(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, nil))
	namespace, secret := rec.Resource(t, "infra-secrets-git-namespace"), rec.Resource(t, "infra-secrets-git")
	assert.Equal(t, "flux-system", namespace.Input("metadata.name"))
	assert.Equal(t, "flux-system", secret.Input("metadata.name"))
	assert.Equal(t, "flux-system", secret.Input("metadata.namespace"))
	assert.Equal(t, map[string]any{"pulumi.com/patchForce": "true"}, secret.Input("metadata.annotations"),
		"a Flux that is taken over has one of that name, with other values")
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

// The names are those that Flux's source-controller 1.9 reads of a GitRepository's Secret (fluxcd/pkg/git, fluxcd/pkg/auth/githubapp).
func TestSecretsFoundation_GivesFluxTheKeysThatItReads(t *testing.T) {
	const url, ca, hosts = "https://git.home.arpa/platform/slipway.git", "CERTIFICATE\n", "git.home.arpa ssh-ed25519 AAAA\n"
	installation, secret := 78901234, cluster.NewSecret(password)
	for name, test := range map[string]struct {
		git  access
		data map[string]string
	}{
		"user name and password": {
			access{GitOps: cluster.GitOps{URL: url, Username: "robot"}, Secrets: cluster.Secrets{GitPassword: secret}},
			map[string]string{"username": "robot", "password": password},
		},
		"user name and password with a CA": {
			access{
				GitOps: cluster.GitOps{URL: url, Username: "robot", CA: ca}, Secrets: cluster.Secrets{GitPassword: secret},
			},
			map[string]string{"username": "robot", "password": password, "ca.crt": ca},
		},
		"SSH": {
			access{GitOps: cluster.GitOps{URL: "ssh://git@git.home.arpa/a/b", Username: "flux", KnownHosts: hosts},
				Secrets: cluster.Secrets{GitIdentity: secret}},
			map[string]string{"identity": password, "known_hosts": hosts},
		},
		"GitHub App": {
			access{
				GitOps: cluster.GitOps{
					URL: url, Username: "flux", GitHubApp: &cluster.GitHubApp{ID: 123456, InstallationID: &installation},
				},
				Secrets: cluster.Secrets{GitHubAppPrivateKey: secret}},
			map[string]string{"githubAppID": "123456", "githubAppInstallationID": "78901234", "githubAppPrivateKey": password},
		},
		"GitHub App of an owner on another host, with a CA": {
			access{GitOps: cluster.GitOps{URL: url, CA: ca, GitHubApp: &cluster.GitHubApp{
				ID: 123456, Owner: "slipway-platform", BaseURL: "https://git.home.arpa/api/v3",
			}}, Secrets: cluster.Secrets{GitHubAppPrivateKey: secret}},
			map[string]string{"githubAppID": "123456", "githubAppInstallationOwner": "slipway-platform", "githubAppPrivateKey": password,
				"githubAppBaseURL": "https://git.home.arpa/api/v3", "ca.crt": ca},
		},
		"public with a CA": {
			access{GitOps: cluster.GitOps{URL: url, Username: "flux", Public: true, CA: ca}},
			map[string]string{"ca.crt": ca},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &mocks.Recorder{}
			made, err := foundation(rec, func(a *secrets.SecretsFoundationArgs) { a.Flux = test.git.flux() })
			require.NoError(t, err)
			assert.Equal(t, "flux-system", made.Flux.Source)
			assert.Empty(t, made.Flux.Decryption)
			reg := rec.Resource(t, "infra-secrets-git")
			assert.Equal(t, "flux-system", reg.Input("metadata.name"))
			data := map[string]string{}
			for key, value := range reg.Input("data").(map[string]any) {
				text, err := base64.StdEncoding.DecodeString(value.(string))
				require.NoError(t, err)
				data[key] = string(text)
			}
			assert.Equal(t, test.data, data)
			assert.Empty(t, reg.PlainPaths(base64.StdEncoding.EncodeToString([]byte(password))))
		})
	}
}

func TestSecretsFoundation_CreatesNoGitSecretForAPublicRepository(t *testing.T) {
	rec := &mocks.Recorder{}
	made, err := foundation(rec, func(a *secrets.SecretsFoundationArgs) {
		a.Flux = access{GitOps: cluster.GitOps{URL: "https://git.home.arpa/a", Username: "flux", Public: true}}.flux()
	})
	require.NoError(t, err)
	assert.Empty(t, made.Flux.Source)
	assert.Len(t, rec.Resources(), 5, "three providers, the component and the namespace: %v", rec.Names())
	assert.Contains(t, rec.Resource(t, "next").Dependencies, rec.Resource(t, "infra-secrets-git-namespace").URN)
}

func TestSecretsFoundation_GivesFluxTheAccessToAnArtifactOrABucket(t *testing.T) {
	login := cluster.NewSecret(password)
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct {
		git                  access
		resource, kind, made string
		data                 map[string]any
	}{
		"artifact": {
			access{GitOps: cluster.GitOps{OCI: &cluster.OCIArtifact{URL: "oci://registry.example.com/a"}, CA: "CERTIFICATE"},
				Secrets: cluster.Secrets{OCIConfig: login, FluxRegistryConfig: login}},
			"infra-secrets-oci", "kubernetes.io/dockerconfigjson", "flux-oci", map[string]any{".dockerconfigjson": encode(password)},
		},
		"bucket": {
			access{GitOps: cluster.GitOps{Bucket: &cluster.Bucket{Endpoint: "s3.example.com", Name: "platform"}, CA: "CERTIFICATE"},
				Secrets: cluster.Secrets{BucketAccessKey: cluster.NewSecret("id"), BucketSecretKey: login, FluxRegistryConfig: login}},
			"infra-secrets-bucket", "", "flux-bucket", map[string]any{"accesskey": encode("id"), "secretkey": encode(password)},
		},
	} {
		rec := &mocks.Recorder{}
		foundation, err := foundation(rec, func(a *secrets.SecretsFoundationArgs) { a.Flux = test.git.flux() })
		require.NoError(t, err, name)
		assert.Equal(t, cluster.FluxSecrets{Source: test.made, CA: "flux-source-ca", Images: "flux-images"}, foundation.Flux)
		source, images := rec.Resource(t, test.resource), rec.Resource(t, "infra-secrets-images")
		assert.Equal(t, test.data, source.Input("data"))
		kind, _ := source.Input("type").(string)
		assert.Equal(t, test.kind, kind)
		assert.Equal(t, test.made, source.Input("metadata.name"))
		assert.Equal(t, map[string]any{"ca.crt": encode("CERTIFICATE")}, rec.Resource(t, "infra-secrets-source-ca").Input("data"))
		assert.Equal(t, "kubernetes.io/dockerconfigjson", images.Input("type"))
		assert.Equal(t, map[string]any{".dockerconfigjson": encode(password)}, images.Input("data"))
		for _, reg := range rec.Resources() {
			assert.Empty(t, reg.PlainPaths(encode(password)), reg.Name)
		}
		assert.Subset(t, rec.Resource(t, "next").Dependencies, []string{source.URN, images.URN})
	}
}

func TestSecretsFoundation_CreatesTheKeysOfAge(t *testing.T) {
	rec := &mocks.Recorder{}
	made, err := foundation(rec, func(a *secrets.SecretsFoundationArgs) { a.Flux.Age = cluster.NewSecret(password) })
	require.NoError(t, err)
	secret := rec.Resource(t, "infra-secrets-age")
	assert.Equal(t, made.Flux.Decryption, secret.Input("metadata.name"))
	assert.Equal(t, "flux-system", secret.Input("metadata.namespace"))
	assert.Equal(t, map[string]any{"reconcile.fluxcd.io/watch": "Enabled"}, secret.Input("metadata.labels"), "Flux uses a change at once")
	encoded := base64.StdEncoding.EncodeToString([]byte(password))
	assert.Equal(t, map[string]any{"age.agekey": encoded}, secret.Input("data"))
	assert.Empty(t, secret.PlainPaths(encoded))
	assert.True(t, rec.After(secret, rec.Resource(t, "infra-secrets-git-namespace")))
	assert.Contains(t, rec.Resource(t, "next").Dependencies, secret.URN)
	assert.Contains(t, secret.Dependencies, rec.Resource(t, "gate").URN)
}

func TestSecretsFoundation_CreatesOnlyTheGivenKinds(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, run(rec, func(a *secrets.SecretsFoundationArgs) { a.Flux = nil }))
	assert.Len(t, rec.Resources(), 5, "three providers, the component and the namespace: %v", rec.Names())
}

func TestSecretsFoundation_RejectsArgsBeforeAnythingIsCreatedAndShowsNoSecret(t *testing.T) {
	for name, test := range map[string]struct {
		problem string
		mutate  func(*secrets.SecretsFoundationArgs)
	}{
		"no repository": {"flux: is incomplete", func(a *secrets.SecretsFoundationArgs) { a.Flux.GitOps = cluster.GitOps{} }},
		"no Git password": {"flux: is incomplete", func(a *secrets.SecretsFoundationArgs) {
			a.Flux.Access[0].Secret = cluster.Secret{}
		}},
		"a password for SSH": {"flux: is incomplete", func(a *secrets.SecretsFoundationArgs) {
			a.Flux.GitOps.URL = "ssh://git@git.home.arpa/a"
		}},
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
