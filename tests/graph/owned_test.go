package graph

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// upOwned runs the program with a stack file beside which is the checkout, as Pulumi does. edit changes the text of one of the files.
func upOwned(t *testing.T, edit func(folder string)) *mocks.Recorder {
	t.Helper()
	return upOwnedBy(t, "flux", edit)
}

func upOwnedBy(t *testing.T, owner string, edit func(folder string)) *mocks.Recorder {
	t.Helper()
	file := fixtures.Write(t, "owned-by-"+owner, "infra")
	if edit != nil {
		edit(filepath.Dir(file))
	}
	t.Chdir(filepath.Dir(file))
	return upFile(t, file)
}

// replace changes the text of a file.
func replace(t *testing.T, file, was, is string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), was)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), was, is, 1)), 0o600))
}

func TestOwned_PulumiIgnoresAndKeepsWhatFluxOwns(t *testing.T) {
	ofPulumi, rec := up(t, "infra"), upOwned(t, nil)
	releases := rec.OfType(typeRelease)
	require.GreaterOrEqual(t, len(releases), 8)
	for _, release := range releases {
		assert.True(t, release.RetainOnDelete, release.Name)
		assert.Equal(t, []string{"chart", "repositoryOpts", "skipAwait", "timeout", "values", "version"},
			release.RPC.GetIgnoreChanges(), release.Name)
		assert.Equal(t, "owned by Flux", release.Input("description"), release.Name)
	}
	for _, namespace := range []string{"core-cert-manager-namespace", "core-spegel-namespace", "secrets-external-secrets-namespace"} {
		assert.True(t, rec.Resource(t, namespace).RetainOnDelete, "%s has what Flux owns", namespace)
	}
	assert.False(t, ofPulumi.Resource(t, "core-cert-manager-namespace").RetainOnDelete)
	certManager := rec.Resource(t, certManager)
	assert.Equal(t, "v1.21.2", certManager.Input("version"), "a new cluster gets what Git declares")
	assert.EqualValues(t, 2, certManager.Input("values.replicaCount"))
	for _, release := range ofPulumi.OfType(typeRelease) {
		assert.Empty(t, release.RPC.GetIgnoreChanges(), release.Name)
		assert.Nil(t, release.Input("description"), release.Name)
	}
}

// What Slipway sets reaches Flux as one secret for each component, before Flux starts. Git's values are not in it.
func TestOwned_SlipwaysValuesReachFluxAsSecrets(t *testing.T) {
	ofPulumi, rec := up(t, "infra"), upOwned(t, nil)
	sync := rec.Resource(t, instance)
	for release, want := range map[string]string{
		"cilium": "kubeProxyReplacement", "coredns": "replicaCount", "spegel": "spegel", "cert-manager": "crds",
		"sealed-secrets": "fullnameOverride", "connect": "connect", "external-secrets": "installCRDs", "flux-operator": "web",
	} {
		secret := rec.Resource(t, "gitops-values-"+release)
		assert.Equal(t, release+"-values", secret.Input("metadata.name"))
		assert.Equal(t, "flux-system", secret.Input("metadata.namespace"))
		labels := secret.Input("metadata.labels").(map[string]any)
		assert.Equal(t, "Enabled", labels["reconcile.fluxcd.io/watch"])
		assert.True(t, rec.After(sync, secret), release)
		assert.True(t, rec.After(secret, rec.Resource(t, "secrets-git-namespace")), release)

		require.True(t, secret.SecretInput("data"), release)
		encoded := secret.Input("data").(map[string]any)["values.yaml"].(string)
		text, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		var values map[string]any
		require.NoError(t, json.Unmarshal(text, &values), release)
		assert.Contains(t, values, want, release)
		if release == "cert-manager" {
			assert.NotContains(t, values, "replicaCount", "that is Git's")
		}
	}
	for _, reg := range ofPulumi.Resources() {
		assert.NotContains(t, reg.Name, "gitops-values-", "Pulumi owns everything there")
	}
}

func TestOwned_ArgoCDGetsSlipwaysValuesAndNothingOfFlux(t *testing.T) {
	rec := upOwnedBy(t, "argocd", nil)
	releases := rec.OfType(typeRelease)
	require.GreaterOrEqual(t, len(releases), 8)
	for _, release := range releases {
		assert.True(t, release.RetainOnDelete, release.Name)
		assert.Contains(t, release.RPC.GetIgnoreChanges(), "values", release.Name)
		assert.Equal(t, "owned by Argo CD", release.Input("description"), release.Name)
		name := release.Input("name").(string)
		secret := rec.Resource(t, "gitops-values-"+name)
		assert.Equal(t, []any{name + "-values", "argocd", nil}, []any{
			secret.Input("metadata.name"), secret.Input("metadata.namespace"), secret.Input("metadata.labels"),
		})
		assert.True(t, secret.SecretInput("data"), name)
		assert.Equal(t, []string{secret.Name + "-tried"}, secret.RPC.GetHooks().GetAfterUpdate(), "until then the pods are the former ones")
		assert.Equal(t, []string{"secrets-argocd-foreign"}, secret.BeforeCreate, "an Argo CD of somebody else keeps its Secrets")
		assert.True(t, rec.After(secret, rec.Resource(t, "secrets-argocd-namespace")), name)
		assert.True(t, rec.After(rec.Resource(t, "gitops-root"), secret), name)
		assert.Empty(t, secret.Aliases, name)
	}
	for probe, release := range map[string]string{gate: "cilium", "core-coredns-probe": "coredns", handover: "argocd"} {
		assert.True(t, rec.After(rec.Resource(t, probe), rec.Resource(t, "gitops-values-"+release)), "%s after the values of %s", probe, release)
	}
	for _, reg := range rec.Resources() {
		assert.NotContains(t, strings.ToLower(reg.Name), "flux")
		assert.NotEqual(t, "flux-system", reg.Input("metadata.namespace"), reg.Name)
	}
}

// A change of such a value reaches the cluster through Flux only, so that what waits for its effect must come after the Secret.
func TestOwned_WhatVerifiesAComponentComesAfterItsValues(t *testing.T) {
	rec := upOwned(t, nil)
	for release, probes := range map[string][]string{
		"cilium": {gate}, "coredns": {"core-coredns-probe"}, "spegel": {"core-spegel-probe"}, "cert-manager": {"core-cert-manager-probe"},
		"sealed-secrets": {"secrets-sealed-secrets-probe", "secrets-sealed-secrets-sample-probe"}, "connect": {"secrets-connect-probe"},
		"external-secrets": {"secrets-external-secrets-probe"}, "flux-operator": {handover},
	} {
		values := rec.Resource(t, "gitops-values-"+release)
		for _, probe := range probes {
			assert.True(t, rec.After(rec.Resource(t, probe), values), "%s after the values of %s", probe, release)
		}
		assert.NotEmpty(t, values.BeforeCreate, "a Flux of somebody else keeps its Secrets")
		assert.Equal(t, []string{values.Name + "-tried"}, values.RPC.GetHooks().GetAfterUpdate(), "until then the pods are the former ones")
		require.Len(t, values.Aliases, 1)
		assert.Contains(t, values.Aliases[0].String(), "slipway:gitops:GitOpsHandover::gitops", "the Secrets of earlier runs stay")
		assert.False(t, values.RetainOnDelete, release)
	}
}

func TestOwned_WithoutGitOpsTheReleasesStayAndNothingIsWrittenForFlux(t *testing.T) {
	rec := upOwned(t, func(folder string) {
		file := filepath.Join(folder, "Pulumi.infra.yaml")
		replace(t, file, "slipway:gitops:\n", "slipway:gitops:\n    enabled: false\n")
	})
	for _, release := range rec.OfType(typeRelease) {
		assert.True(t, release.RetainOnDelete, release.Name)
	}
	for _, name := range rec.Names() {
		assert.NotContains(t, name, "-values-")
	}
}

// Flux rolls out a changed value at any time, so that it must not run a probe or a gate again.
func TestOwned_AValueOfGitChangesNothingThatPulumiDoes(t *testing.T) {
	before := upOwned(t, nil)
	after := upOwned(t, func(folder string) {
		const platform = "kubernetes/clusters/owned/platform/"
		replace(t, filepath.Join(folder, platform+"cert-manager.yaml"), "replicaCount: 2", "replicaCount: 3")
		replace(t, filepath.Join(folder, platform+"cilium.yaml"), "  valuesFrom:", "  values: {MTU: 1400}\n  valuesFrom:")
	})
	compared := 0
	for _, reg := range after.Resources() {
		if reg.Type == typeCommand {
			compared++
			assert.Equal(t, before.Resource(t, reg.Name).Input("triggers"), reg.Input("triggers"), reg.Name)
		}
	}
	assert.Greater(t, compared, 6)
}
