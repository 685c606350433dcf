package pins_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/core/pins"
)

func TestSets_NameTheProjectsOwnManifests(t *testing.T) {
	for set, want := range map[*pins.Set]string{
		&pins.GatewayAPI:         "https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.3.0/standard-install.yaml",
		&pins.CertManager:        "https://github.com/cert-manager/cert-manager/releases/download/v1.3.0/cert-manager.crds.yaml",
		&pins.ExternalSecrets:    "https://raw.githubusercontent.com/external-secrets/external-secrets/v1.3.0/deploy/crds/bundle.yaml",
		&pins.VictoriaMetrics:    "https://github.com/VictoriaMetrics/operator/releases/download/v1.3.0/crd.yaml",
		&pins.PrometheusOperator: "https://github.com/prometheus-operator/prometheus-operator/releases/download/v1.3.0/stripped-down-crds.yaml",
		&pins.CloudNativePG:      "https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-1.3/releases/cnpg-1.3.0.yaml",
	} {
		assert.Equal(t, want, set.URL("v1.3.0"))
		assert.Equal(t, want, set.URL("1.3.0"), "a v makes no difference")
	}
}

func TestSets_ArePinnedAndComplete(t *testing.T) {
	for _, set := range []pins.Set{pins.GatewayAPI, pins.CertManager, pins.ExternalSecrets, pins.VictoriaMetrics, pins.PrometheusOperator, pins.CloudNativePG} {
		assert.Regexp(t, `^v\d+\.\d+\.\d+$`, set.Version, set.Key)
		u, err := url.Parse(set.URL(""))
		require.NoError(t, err)
		assert.Equal(t, "https", u.Scheme)
		assert.NotContains(t, set.URL(""), "{")
	}
}

func TestPins_AreFoundByRenovate(t *testing.T) {
	source, err := os.ReadFile("pins.go")
	require.NoError(t, err)
	assert.Equal(t, 8, strings.Count(string(source), "// renovate: datasource="), "one comment a version")
}

func TestGatewayAPI_FitsCiliumByWhatCiliumDocuments(t *testing.T) {
	require.NoError(t, pins.GatewayAPIFitsCilium("v1.3.0", "1.18.7"))
	require.NoError(t, pins.GatewayAPIFitsCilium("1.4.1", "v1.19.0"))
	require.ErrorContains(t, pins.GatewayAPIFitsCilium("v1.5.1", "1.18.7"), "v1.5.1 does not go with Cilium 1.18.7, which is made for v1.3; use v1.3.x")
	require.ErrorContains(t, pins.GatewayAPIFitsCilium("v1.30.0", "1.18.7"), "v1.30.0")
	require.ErrorContains(t, pins.GatewayAPIFitsCilium("v1.3.0", "2.0.0"), "is not known here; use one of 1.16, ")
}

func TestDefaults_GoTogether(t *testing.T) {
	require.NoError(t, pins.GatewayAPIFitsCilium(pins.GatewayAPI.Version, "1.18.7"), "with the Cilium that Slipway installs")
	require.NoError(t, pins.CertManagerFits(pins.CertManager.Version, pins.CertManagerVersion))
	require.ErrorContains(t, pins.CertManagerFits("v1.20.0", "v1.21.2"), "use those of the chart's release")
}
