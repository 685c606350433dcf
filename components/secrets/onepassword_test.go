package secrets_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/golden"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestOnePassword_ComesUpFromItsCredentialsToAProbeThatHasSynced(t *testing.T) {
	for range 5 {
		rec := &mocks.Recorder{}
		_, err := provide(t, rec, nil)
		require.NoError(t, err)
		chain := []string{
			"secrets-external-secrets-namespace", "secrets-onepassword-credentials", "secrets-connect", "secrets-connect-probe",
			"secrets-external-secrets", "secrets-external-secrets-probe", "secrets-onepassword-store",
			"secrets-onepassword-item", "secrets-onepassword-probe", "next",
		}
		for i, later := range chain {
			assert.True(t, rec.After(rec.Resource(t, later), rec.Resource(t, "gate")) || later == "next", later)
			for _, earlier := range chain[:i] {
				assert.True(t, rec.After(rec.Resource(t, later), rec.Resource(t, earlier)), "%s after %s", later, earlier)
			}
		}
		assert.Contains(t, rec.Resource(t, "next").Dependencies, rec.Resource(t, "secrets-onepassword-probe").URN)
		assert.True(t, rec.After(rec.Resource(t, "secrets-onepassword-store"), rec.Resource(t, "secrets-onepassword-token")))
		assert.True(t, rec.After(rec.Resource(t, "secrets-connect"), rec.Resource(t, "dns")))
		assert.False(t, rec.After(rec.Resource(t, "secrets-connect"), rec.Resource(t, "secrets-sealed-secrets")), "providers are independent")
	}
}

func TestOnePassword_ObjectsReferToEachOther(t *testing.T) {
	rec := &mocks.Recorder{}
	_, err := provide(t, rec, nil)
	require.NoError(t, err)
	for name, secret := range map[string]struct{ name, key, value string }{
		"secrets-onepassword-credentials": {"op-credentials", "1password-credentials.json", credentials},
		"secrets-onepassword-token":       {"onepassword-token", "token", token},

		"secrets-onepassword-storage-token": {"onepassword-storage-token", "token", storageToken},
	} {
		reg := rec.Resource(t, name)
		assert.Equal(t, "external-secrets", reg.Input("metadata.namespace"))
		assert.Equal(t, secret.name, reg.Input("metadata.name"))
		assert.Equal(t, map[string]any{secret.key: in64(secret.value)}, reg.Input("data"), "encoded once")
	}
	connect := rec.Resource(t, "secrets-connect")
	assert.Equal(t, "op-credentials", connect.Input("values.connect.credentialsName"))
	assert.Equal(t, "1password-credentials.json", connect.Input("values.connect.credentialsKey"))
	assert.Equal(t, false, connect.Input("values.operator.create"))
	assert.Equal(t, false, rec.Resource(t, "secrets-external-secrets").Input("values.installCRDs"))

	store := rec.Resource(t, "secrets-onepassword-store").Input("spec.provider.onepassword")
	assert.Equal(t, map[string]any{
		"connectHost": "http://onepassword-connect.external-secrets.svc.cluster.local:8080",
		"vaults":      map[string]any{"infra": 1.0, "Team A": 2.0},
		"auth": map[string]any{"secretRef": map[string]any{"connectTokenSecretRef": map[string]any{
			"namespace": "external-secrets", "name": "onepassword-token", "key": "token",
		}}},
	}, store)
	item := rec.Resource(t, "secrets-onepassword-item")
	assert.Equal(t, "1h0m0s", item.Input("spec.refreshInterval"), "the operator would change another form to this one")
	assert.Equal(t, map[string]any{"kind": "ClusterSecretStore", "name": "onepassword"}, item.Input("spec.secretStoreRef"))
	assert.Equal(t, []any{map[string]any{
		"secretKey": "value", "remoteRef": map[string]any{"key": "slipway-probe", "property": "password"},
	}}, item.Input("spec.data"))

	run := rec.Resource(t, "secrets-onepassword-probe")
	assert.Equal(t, probe.Program+" external-secrets", run.Input("create"))
	spec := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
	assert.Equal(t, map[string]any{
		"cluster": "infra", "kubeconfig": kubeconfig, "store": "onepassword", "namespace": "external-secrets",
		"externalSecret": "slipway-probe", "timeout": "1m30s", "storage": "onepassword-storage",
	}, spec)
}

// Whoever may create an ExternalSecret in a namespace reads everything that the store's token reads.
func TestOnePassword_EachStoreHasItsOwnTokenVaultsAndNamespaces(t *testing.T) {
	rec := &mocks.Recorder{}
	_, err := provide(t, rec, func(a *secrets.SecretsFoundationArgs) {
		onepassword(a).Settings.Namespaces = []string{"shop", "cert-manager"}
	})
	require.NoError(t, err)
	for name, want := range map[string]struct {
		token      string
		vaults     map[string]any
		namespaces []any
	}{
		"secrets-onepassword": {"onepassword-token", map[string]any{"infra": 1.0, "Team A": 2.0},
			[]any{"cert-manager", "etcd-backup", "external-dns", "external-secrets", "shop"}},
		"secrets-onepassword-storage": {"onepassword-storage-token", map[string]any{"storage": 1.0}, []any{"rook-ceph"}},
	} {
		store := rec.Resource(t, name+"-store")
		assert.Equal(t, []any{map[string]any{"namespaces": want.namespaces}}, store.Input("spec.conditions"), name)
		assert.Equal(t, want.vaults, store.Input("spec.provider.onepassword.vaults"), name)
		assert.Equal(t, want.token, store.Input("spec.provider.onepassword.auth.secretRef.connectTokenSecretRef.name"), name)
		assert.True(t, rec.After(store, rec.Resource(t, name+"-token")), name)
		assert.True(t, rec.After(store, rec.Resource(t, "secrets-external-secrets-probe")), name)
		assert.True(t, rec.After(rec.Resource(t, "secrets-onepassword-probe"), store), name)
	}
	rec = &mocks.Recorder{}
	_, err = provide(t, rec, func(a *secrets.SecretsFoundationArgs) { onepassword(a).Storage = nil })
	require.NoError(t, err)
	assert.NotContains(t, rec.Names(), "secrets-onepassword-storage-store")
	_, err = provide(t, &mocks.Recorder{}, func(a *secrets.SecretsFoundationArgs) { onepassword(a).Storage.Token = cluster.Secret{} })
	require.ErrorContains(t, err, "onePassword.storage: is incomplete")
}

// tests/tree compares the objects with the CRDs of the operator.
func TestOnePassword_ObjectsAreTheGoldenFile(t *testing.T) {
	rec := &mocks.Recorder{}
	_, err := provide(t, rec, nil)
	require.NoError(t, err)
	var objects []string
	for _, name := range []string{"secrets-onepassword-store", "secrets-onepassword-storage-store", "secrets-onepassword-item"} {
		object := map[string]any{}
		for _, part := range []string{"apiVersion", "kind", "metadata", "spec"} {
			object[part] = rec.Resource(t, name).Input(part)
		}
		text, err := yaml.Marshal(object)
		require.NoError(t, err)
		objects = append(objects, string(text))
	}
	golden.File(t, "testdata/onepassword.yaml", strings.Join(objects, "---\n"))
}

// A rotation is verified only if the operator reads the item again, and the probe waits for that.
func TestOnePassword_AChangedSecretIsReadAndVerifiedAgain(t *testing.T) {
	seen := func(change func(*secrets.OnePassword)) (item, pods, trigger, store any) {
		rec := &mocks.Recorder{}
		_, err := provide(t, rec, func(a *secrets.SecretsFoundationArgs) { change(onepassword(a)) })
		require.NoError(t, err)
		return rec.Resource(t, "secrets-onepassword-item").Input("spec.target.template"),
			rec.Resource(t, "secrets-connect").Input("values.connect.podAnnotations"),
			rec.Resource(t, "secrets-onepassword-probe").Input("triggers"),
			rec.Resource(t, "secrets-onepassword-store").Input("metadata.annotations")
	}
	item, pods, trigger, store := seen(func(*secrets.OnePassword) {})
	for name, change := range map[string]func(*secrets.OnePassword){
		"token":       func(o *secrets.OnePassword) { o.Token = cluster.NewSecret("eyJ.other.sig") },
		"credentials": func(o *secrets.OnePassword) { o.Credentials = cluster.NewSecret("{}") },
		"vaults":      func(o *secrets.OnePassword) { o.Settings.Vaults = []string{"infra"} },
		"field":       func(o *secrets.OnePassword) { o.Settings.Probe.Field = "other" },
		"Connect":     func(o *secrets.OnePassword) { o.Settings.Connect.Version = "2.4.2" },
	} {
		changedItem, changedPods, changedTrigger, changedStore := seen(change)
		assert.NotEqual(t, store, changedStore, "%s: the operator does not look at a refused store again", name)
		assert.NotEqual(t, item, changedItem, name)
		assert.NotEqual(t, trigger, changedTrigger, name)
		assert.Equal(t, name == "credentials", !assert.ObjectsAreEqual(pods, changedPods), "%s: Connect reads only its credentials", name)
	}
}
