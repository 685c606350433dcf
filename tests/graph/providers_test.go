package graph

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestProviders_AreNoneUnlessTheStackDeclaresThem(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "minimal", "infra"))
	var names []string
	for _, reg := range rec.Resources() {
		if strings.Contains(reg.URN, "slipway:secrets:") {
			names = append(names, reg.Name)
		}
	}
	assert.ElementsMatch(t, []string{"secrets", "secrets-git"}, names)
	assert.Len(t, rec.OfType("tls:index/privateKey:PrivateKey"),
		len(upFile(t, fixtures.Write(t, "onepassword", "infra")).OfType("tls:index/privateKey:PrivateKey")), "1Password needs no key")
}

func TestProviders_AreReadyBeforeFluxAndAfterWhatTheyNeed(t *testing.T) {
	for name, providers := range map[string][]string{
		"sealed-secrets": {sealedSecrets}, "onepassword": {onepassword}, "everything": {sealedSecrets, onepassword},
	} {
		rec := upFile(t, fixtures.Write(t, name, "infra"))
		for _, provider := range providers {
			reg := rec.Resource(t, provider)
			assert.True(t, rec.After(reg, rec.Resource(t, gate)), provider)
			assert.True(t, rec.After(reg, rec.Resource(t, coreDNS+"-probe")), "%s resolves names", provider)
			assert.True(t, rec.After(reg, rec.Resource(t, crds)), "%s uses CRDs", provider)
		}
		assert.True(t, rec.After(rec.Resource(t, gitSecret), rec.Resource(t, gate)))
		assert.False(t, rec.After(rec.Resource(t, gitSecret), rec.Resource(t, coreDNS)), "Flux's Secrets do not wait for providers")
		for _, provider := range providers {
			leaf := rec.Resource(t, strings.TrimSuffix(provider, "-probe")+"-probe")
			assert.True(t, rec.After(rec.Resource(t, instance), leaf), "%s before Flux", provider)
		}
	}
}

// The key decrypts what is in the repository, for ever: a new cluster of the stack must have it again.
func TestProviders_AKeyThatTheStackMakesIsProtected(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "sealed-secrets", "infra"))
	found := 0
	for _, key := range rec.OfType("tls:index/privateKey:PrivateKey") {
		isSealing := strings.HasPrefix(key.Name, "secrets-sealing-key-")
		assert.Equal(t, isSealing, key.Protect, key.Name)
		if isSealing {
			found++
			assert.Empty(t, key.DeletedWith)
			assert.Empty(t, key.RPC.GetReplaceWith())
		}
	}
	assert.Equal(t, 1, found)
}

func TestProviders_ShowNoSecret(t *testing.T) {
	rec := upFile(t, fixtures.Write(t, "everything", "infra"))
	secrets := secretValues()
	oldKey, _, _ := strings.Cut(secrets["slipway:sealedSecretsOldKeys"], "-----BEGIN CERTIFICATE")
	for _, reg := range rec.Resources() {
		for _, secret := range []string{
			connectCredentials, connectToken, secrets["slipway:sealedSecretsKey"], oldKey, keyMaterial, secrets["slipway:sopsAgeKey"],
			talosKey("talos-secrets"), talosKey("talos-secrets-2"), talosKey("talos-kubernetes-secrets-3 of Kubernetes"),
			talosKey("talos-secrets of etcd"), talosKey("talos-etcd-secrets-4 of etcd"),
		} {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				assert.Empty(t, reg.PlainPaths(form), "%s %s", reg.Type, reg.Name)
			}
		}
	}
	for _, name := range []string{"secrets-onepassword-credentials", "secrets-onepassword-token", "secrets-onepassword-storage-token",
		"secrets-sealing-key-1"} {
		assert.True(t, secretNamed(t, rec, name).SecretInput("data"), name)
	}
}

// secretNamed returns the Secret of that name, not its key, which has the same name.
func secretNamed(t *testing.T, rec *mocks.Recorder, name string) mocks.Registration {
	t.Helper()
	for _, reg := range rec.OfType("kubernetes:core/v1:Secret") {
		if reg.Name == name {
			return reg
		}
	}
	require.Fail(t, "no Secret "+name)
	return mocks.Registration{}
}

func TestProviders_WrongSecretsRegisterNothing(t *testing.T) {
	for problem, change := range map[string]func(rec *mocks.Recorder){
		"onepasswordToken: is missing":        func(rec *mocks.Recorder) { delete(rec.Secrets, "slipway:onepasswordToken") },
		"onepasswordStorageToken: is missing": func(rec *mocks.Recorder) { delete(rec.Secrets, "slipway:onepasswordStorageToken") },
		"onepasswordToken: is not a JWT": func(rec *mocks.Recorder) {
			rec.Secrets["slipway:onepasswordToken"] = "hunter2"
		},
		"onepasswordCredentials: is in base64 twice": func(rec *mocks.Recorder) {
			once := base64.StdEncoding.EncodeToString([]byte(connectCredentials))
			rec.Secrets["slipway:onepasswordCredentials"] = base64.StdEncoding.EncodeToString([]byte(once))
		},
		"sealedSecretsCert: belongs to another key": func(rec *mocks.Recorder) {
			old := rec.Secrets["slipway:sealedSecretsOldKeys"]
			rec.Secrets["slipway:sealedSecretsCert"] = old[strings.Index(old, "-----BEGIN CERTIFICATE"):]
		},
	} {
		rec := newRecorderOf(t, fixtures.Write(t, "everything", "infra"), "infra")
		change(rec)
		err := rec.Run(stacks.Deploy)
		require.ErrorContains(t, err, problem)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, err.Error(), "MARKER")
		assert.Empty(t, rec.Names())
	}
}
