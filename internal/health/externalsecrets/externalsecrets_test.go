package externalsecrets

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/healthtest"
)

func declared() *Spec {
	spec := &Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: "k"},
		Store:  "onepassword", Storage: "onepassword-storage", Namespace: "external-secrets", ExternalSecret: "slipway-probe",
	}
	spec.SetDefaults()
	return spec
}

// synced is a cluster whose probe has synced, after a change.
func synced(change func(store, secret *Object)) *Cluster {
	store := Object{Kind: Store, Name: "onepassword", Ready: "True", Reason: "Valid", Current: true}
	secret := Object{Kind: Secret, Namespace: "external-secrets", Name: "slipway-probe", Ready: "True", Reason: "SecretSynced", Current: true}
	change(&store, &secret)
	storage := store
	storage.Name, storage.Ready, storage.Reason = "onepassword-storage", "True", "Valid"
	other := Object{Kind: Secret, Namespace: "external-secrets", Name: "another", Ready: "False"}
	return &Cluster{
		Stores:   health.Seen[Object]{Synced: true, Items: []Object{storage, store}},
		Secrets:  health.Seen[Object]{Synced: true, Items: []Object{other, secret}},
		Warnings: health.Seen[Warning]{Synced: true},
	}
}

// refusedStorage is a cluster whose store for the storage is not Ready.
func refusedStorage(text string) *Cluster {
	seen := synced(func(*Object, *Object) {})
	seen.Stores.Items[0].Ready, seen.Stores.Items[0].Reason = "False", "InvalidProviderConfig"
	return seen.warn(Store, "onepassword-storage", "event InvalidProviderConfig: "+text)
}

func (seen *Cluster) warn(kind, name, text string) *Cluster {
	namespace := map[string]string{Store: "default", Secret: "external-secrets"}[kind]
	seen.Warnings.Items = append(seen.Warnings.Items,
		Warning{Kind: kind, Namespace: namespace, Name: name, Text: text, Time: int64(len(seen.Warnings.Items) + 1)})
	return seen
}

func TestExternalSecrets_HoldOnceTheProbeHasSynced(t *testing.T) {
	well := synced(func(*Object, *Object) {}).warn(Store, "onepassword", "event InvalidProviderConfig: connection refused")
	assert.True(t, health.Hold(Evaluate(declared(), well)), "a warning of before does not matter")
	assert.False(t, health.Hold(Evaluate(declared(), &Cluster{})), "nothing was read")
	well.Warnings = health.Seen[Warning]{}
	assert.True(t, health.Hold(Evaluate(declared(), well)), "events are only for reasons")
}

func TestExternalSecrets_WaitForTheEventsBeforeTheyReportAFailure(t *testing.T) {
	seen := synced(func(store, _ *Object) { store.Ready = "False" })
	seen.Warnings = health.Seen[Warning]{}
	assert.True(t, Evaluate(declared(), seen)[0].Unseen)
	seen.Warnings = health.Seen[Warning]{Err: &health.Broken{Reason: "forbidden"}}
	assert.False(t, Evaluate(declared(), seen)[0].Unseen, "they may never come")
}

func TestExternalSecrets_AFailureNamesWhatIsRefused(t *testing.T) {
	refused := func(store, _ *Object) {
		store.Ready, store.Reason, store.Message = "False", "InvalidProviderConfig", "unable to validate store"
	}
	failed := func(_, secret *Object) {
		secret.Ready, secret.Reason, secret.Message = "False", "SecretSyncedError", "could not get secret data from provider"
	}
	reports := healthtest.Begin(t, "external-secrets", "(synced)", Evaluate(declared(), synced(func(*Object, *Object) {})))
	for name, seen := range map[string]*Cluster{
		"crds-missing": {Stores: health.Seen[Object]{Err: &health.Broken{
			Reason: "the API server does not know clustersecretstores.external-secrets.io yet", Unknown: true}}},
		"store-missing":          synced(func(store, _ *Object) { store.Name = "other" }),
		"store-not-seen":         synced(func(store, _ *Object) { store.Ready = "" }),
		"token-refused":          synced(refused).warn(Store, "onepassword", "event InvalidProviderConfig: status 401: Invalid bearer token"),
		"vault-without-access":   synced(refused).warn(Store, "onepassword", "event InvalidProviderConfig: status 403: Authorization: …"),
		"vault-missing":          synced(refused).warn(Store, "onepassword", `event InvalidProviderConfig: Found 0 vaults with title "infra"`),
		"connect-unreachable":    synced(refused).warn(Store, "onepassword", "event InvalidProviderConfig: dial tcp: connection refused"),
		"store-without-an-event": synced(refused).warn(Store, "other", "event InvalidProviderConfig: status 401: Invalid bearer token"),
		"the-newest-event": synced(refused).warn(Store, "onepassword", "event InvalidProviderConfig: connection refused").
			warn(Store, "onepassword", "event InvalidProviderConfig: status 500: Internal Server Error"),
		"item-missing": synced(failed).warn(Secret, "slipway-probe",
			"event UpdateFailed: error processing spec.data[0] (key: slipway-probe), err: "+
				"key not found in 1Password Vaults: slipway-probe in: map[infra:1]"),
		"field-missing": synced(failed).warn(Secret, "slipway-probe",
			"event UpdateFailed: error processing spec.data[0] (key: slipway-probe), err: "+
				"expected one 1Password ItemField matching: 'password' in 'slipway-probe', got 0"),
		"storage-token-refused":        refusedStorage("status 401: Invalid bearer token"),
		"storage-vault-without-access": refusedStorage("status 403: Authorization: …"),
		"secret-missing":               synced(func(_, secret *Object) { secret.Name = "other" }),
		"secret-behind-its-spec":       synced(func(_, secret *Object) { secret.Current = false }),
	} {
		reports.Add(t, name, false, Evaluate(declared(), seen))
	}
	reports.Compare(t)
}

func TestSpec_NamesEveryProblemAndComesBackAsItWasEncoded(t *testing.T) {
	for _, problem := range []string{
		"cluster: is empty", "kubeconfig: is empty", "store: is empty", "namespace: is empty", "externalSecret: is empty",
	} {
		require.ErrorContains(t, new(Spec).Validate(), problem)
	}
	text, err := probe.Encode(declared())
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, declared(), read)
}
