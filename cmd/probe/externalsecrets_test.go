package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

const (
	secretStores    = "apis/external-secrets.io/v1/clustersecretstores"
	externalSecrets = "apis/external-secrets.io/v1/externalsecrets"
)

func putStore(t *testing.T, kube *fakecluster.Kube, condition string) {
	kube.Put(t, secretStores, `{apiVersion: external-secrets.io/v1, kind: ClusterSecretStore, metadata: {name: onepassword, generation: 1},
  status: {conditions: [{type: Ready, `+condition+`}]}}`)
}

func putExternalSecret(t *testing.T, kube *fakecluster.Kube, status string) {
	kube.Put(t, externalSecrets, `{apiVersion: external-secrets.io/v1, kind: ExternalSecret,
  metadata: {name: slipway-probe, namespace: external-secrets, generation: 2}, status: {`+status+`}}`)
}

func externalSecretsSpec(t *testing.T, kube *fakecluster.Kube) string {
	return encode(t, &externalsecrets.Spec{
		Target: targetOf(kube, 20*time.Second),
		Store:  "onepassword", Namespace: "external-secrets", ExternalSecret: "slipway-probe",
	})
}

func TestExternalSecrets_EndOnceTheNewestSpecHasSynced(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	kube.Serves(secretStores, externalSecrets)
	putStore(t, kube, `status: "True", reason: Valid`)
	const synced = `conditions: [{type: Ready, status: "True", reason: SecretSynced}], syncedResourceVersion: `
	putExternalSecret(t, kube, synced+`1-abc`)
	syncs := &until{text: "has not synced its newest spec yet", then: func() { putExternalSecret(t, kube, synced+`2-abc`) }}
	code, _, progress := executeUntil(t, syncs, externalSecretsSpec(t, kube), "external-secrets")
	assert.Equal(t, exitOpen, code, progress)
}

func TestExternalSecrets_WaitForTheStoreOfTheStorageToo(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	kube.Serves(secretStores, externalSecrets)
	putStore(t, kube, `status: "True", reason: Valid`)
	putExternalSecret(t, kube, `conditions: [{type: Ready, status: "True", reason: SecretSynced}], syncedResourceVersion: 2-abc`)
	spec := strings.Replace(externalSecretsSpec(t, kube), `"store":"onepassword"`, `"store":"onepassword","storage":"onepassword-storage"`, 1)
	missing := "ClusterSecretStore onepassword-storage: every ClusterSecretStore has access to its vaults: does not exist"
	made := &until{text: missing, then: func() {
		kube.Put(t, secretStores, `{apiVersion: external-secrets.io/v1, kind: ClusterSecretStore,
  metadata: {name: onepassword-storage, generation: 1},
  status: {conditions: [{type: Ready, status: "True", reason: Valid}]}}`)
	}}
	code, _, progress := executeUntil(t, made, spec, "external-secrets")
	assert.Equal(t, exitOpen, code, progress)
}

func TestExternalSecrets_NameTheRefusedTokenOfTheEventWithoutShowingIt(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	kube.Serves(secretStores, externalSecrets)
	putStore(t, kube, `status: "False", reason: InvalidProviderConfig, message: unable to validate store`)
	putExternalSecret(t, kube, "")
	kube.Put(t, fakecluster.Events, `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, type: Warning,
  reason: InvalidProviderConfig, message: "status 401: Invalid token token=hunter2", lastTimestamp: "2026-01-01T00:00:00Z",
  involvedObject: {kind: ClusterSecretStore, name: onepassword}}`)
	code, report, progress := execute(t, externalSecretsSpec(t, kube), "external-secrets", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.NotEmpty(t, report.Problems)
	assert.Equal(t, "ClusterSecretStore onepassword", report.Problems[0].Subject)
	assert.Equal(t, "Ready is False: InvalidProviderConfig: unable to validate store; event InvalidProviderConfig: status 401: Invalid token "+
		"token=(hidden): Connect refuses the token; set onepasswordToken anew", report.Problems[0].Reason)
	assert.Equal(t, "kubectl --context fake describe clustersecretstore onepassword", report.Problems[0].Command)
	assert.NotContains(t, progress, "hunter2")
}
