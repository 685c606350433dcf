package secrets_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestSecretsFoundation_DeclaresTheRepositoryToArgoCD(t *testing.T) {
	installation := 654321
	for name, test := range map[string]struct {
		git     cluster.GitOps
		secrets cluster.Secrets
		secret  string // the key whose value is secret
		want    map[string]string
	}{
		"a user and a password": {
			cluster.GitOps{URL: "https://git.home.arpa/a/b.git", Username: "flux"},
			cluster.Secrets{GitPassword: cluster.NewSecret(password)}, "password",
			map[string]string{"type": "git", "url": "https://git.home.arpa/a/b.git", "username": "flux", "password": password},
		},
		"a key for SSH": {
			cluster.GitOps{URL: "ssh://git@git.home.arpa/a/b.git"}, cluster.Secrets{GitIdentity: cluster.NewSecret(password)}, "sshPrivateKey",
			map[string]string{"type": "git", "url": "ssh://git@git.home.arpa/a/b.git", "sshPrivateKey": password},
		},
		"a GitHub App": {
			cluster.GitOps{URL: "https://git.home.arpa/a/b.git", GitHubApp: &cluster.GitHubApp{
				ID: 123456, InstallationID: &installation, BaseURL: "https://git.home.arpa/api/v3",
			}}, cluster.Secrets{GitHubAppPrivateKey: cluster.NewSecret(password)}, "githubAppPrivateKey",
			map[string]string{"type": "git", "url": "https://git.home.arpa/a/b.git", "githubAppID": "123456", "githubAppInstallationID": "654321",
				"githubAppEnterpriseBaseUrl": "https://git.home.arpa/api/v3", "githubAppPrivateKey": password},
		},
		"a GitHub App of an account": {
			cluster.GitOps{URL: "https://github.com/a/b", GitHubApp: &cluster.GitHubApp{ID: 123456, Owner: "a"}},
			cluster.Secrets{GitHubAppPrivateKey: cluster.NewSecret(password)}, "githubAppPrivateKey",
			map[string]string{"type": "git", "url": "https://github.com/a/b", "githubAppID": "123456", "githubAppPrivateKey": password},
		},
		"all repositories of an account": {
			cluster.GitOps{
				URL: "https://git.home.arpa/a/b.git", Username: "flux", ArgoCD: cluster.ArgoCD{CredentialsFor: "https://git.home.arpa/a"},
			},
			cluster.Secrets{GitPassword: cluster.NewSecret(password)}, "password",
			map[string]string{"type": "git", "url": "https://git.home.arpa/a", "username": "flux", "password": password},
		},
		"a public repository": {
			cluster.GitOps{URL: "https://git.home.arpa/a/b.git", Public: true}, cluster.Secrets{}, "",
			map[string]string{"type": "git", "url": "https://git.home.arpa/a/b.git"},
		},
	} {
		rec := &mocks.Recorder{}
		require.NoError(t, run(rec, func(a *secrets.SecretsFoundationArgs) {
			a.Flux, a.ArgoCD = nil, &secrets.ArgoCD{GitOps: test.git, Access: test.secrets.OfSource(test.git.Access())}
		}), name)
		secret := rec.Resource(t, "infra-secrets-repository")
		of := "repository"
		if test.git.ArgoCD.CredentialsFor != "" {
			of = "repo-creds"
		}
		assert.Equal(t, map[string]any{"argocd.argoproj.io/secret-type": of}, secret.Input("metadata.labels"), name)
		data, _ := secret.Input("data").(map[string]any)
		got := map[string]string{}
		for key, value := range data {
			text, err := base64.StdEncoding.DecodeString(value.(string))
			require.NoError(t, err)
			got[key] = string(text)
		}
		assert.Equal(t, test.want, got, name)
		if test.secret != "" {
			assert.True(t, secret.SecretInput("data."+test.secret), name)
		}
		assert.Contains(t, rec.Resource(t, "next").Dependencies, secret.URN, "Argo CD starts after it")
		assert.Empty(t, rec.OfType("kubernetes:core/v1:ConfigMap"))
	}
}

func TestSecretsFoundation_RefusesARepositoryWithoutItsSecret(t *testing.T) {
	rec := &mocks.Recorder{}
	err := run(rec, func(a *secrets.SecretsFoundationArgs) {
		a.ArgoCD = &secrets.ArgoCD{GitOps: cluster.GitOps{URL: "https://git.home.arpa/a/b.git"}}
	})
	require.ErrorContains(t, err, "argoCD: is incomplete")
	assert.Empty(t, rec.OfType("slipway:secrets:SecretsFoundation"))
}
