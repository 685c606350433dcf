package cluster_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// manifests returns the URL of each set by its key, after the change and the defaults.
func manifests(change func(*cluster.Cluster)) map[string]string {
	c := cluster.New("infra")
	change(c)
	c.Complete(&cluster.Findings{})
	urls := map[string]string{}
	for _, set := range c.CRDs.Sets() {
		urls[set.Key] = set.Source.URL
	}
	return urls
}

func keysOf(sets []cluster.CRDSet) []string {
	var keys []string
	for _, set := range sets {
		keys = append(keys, set.Key)
	}
	return keys
}

func TestSets_NameTheProjectsOwnManifests(t *testing.T) {
	for _, version := range []string{"v1.3.0"} {
		assert.Equal(t, map[string]string{
			"gatewayAPI":         "https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.3.0/standard-install.yaml",
			"certManager":        "https://github.com/cert-manager/cert-manager/releases/download/v1.3.0/cert-manager.crds.yaml",
			"externalSecrets":    "https://raw.githubusercontent.com/external-secrets/external-secrets/v1.3.0/deploy/crds/bundle.yaml",
			"victoriaMetrics":    "https://raw.githubusercontent.com/VictoriaMetrics/operator/v1.3.0/config/crd/overlay/crd.descriptionless.yaml",
			"prometheusOperator": "https://github.com/prometheus-operator/prometheus-operator/releases/download/v1.3.0/stripped-down-crds.yaml",
			"cloudnativePG":      "https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-1.3/releases/cnpg-1.3.0.yaml",
			"rook":               "https://raw.githubusercontent.com/rook/rook/v1.3.0/deploy/examples/crds.yaml",
			"cephCSI":            "https://raw.githubusercontent.com/ceph/ceph-csi-operator/v1.3.0/deploy/multifile/crd.yaml",
		}, manifests(func(c *cluster.Cluster) {
			for _, set := range c.CRDs.Sets() {
				set.Source.Version = version
			}
		}), version)
	}
}

func TestSets_ArePinnedAndComplete(t *testing.T) {
	c := cluster.New("infra")
	c.Complete(&cluster.Findings{})
	sets := c.CRDs.Sets()
	assert.Equal(t, []string{
		"gatewayAPI", "certManager", "externalSecrets", "victoriaMetrics", "prometheusOperator", "cloudnativePG", "rook", "cephCSI",
	}, keysOf(sets))
	names := map[string]bool{}
	for _, set := range sets {
		assert.Regexp(t, `^v\d+\.\d+\.\d+$`, set.Source.Version, set.Key)
		u, err := url.Parse(set.Source.URL)
		require.NoError(t, err)
		assert.Equal(t, "https", u.Scheme, set.Key)
		assert.NotContains(t, set.Source.URL, "{", set.Key)
		assert.Equal(t, set.Key == "cloudnativePG" || set.Key == "gatewayAPI", set.Bundle, set.Key)
		assert.False(t, names[set.Name], "%s: reports identify sets by their names", set.Name)
		names[set.Name] = true
	}
}

func TestSets_OfCertManagerFollowItsChart(t *testing.T) {
	assert.Equal(t, "https://github.com/cert-manager/cert-manager/releases/download/v1.19.1/cert-manager.crds.yaml",
		manifests(func(c *cluster.Cluster) { c.CertManager.Version = "v1.19.1" })["certManager"])
}

func TestSets_KeepADeclaredManifest(t *testing.T) {
	const own = "https://mirror.example.com/crds.yaml"
	assert.Equal(t, own, manifests(func(c *cluster.Cluster) {
		c.CRDs.GatewayAPI = cluster.CRDSource{Version: "v1.3.1", URL: own}
	})["gatewayAPI"])
}

func TestInstalled_OmitsSkippedSets(t *testing.T) {
	c := cluster.New("infra")
	assert.Equal(t, keysOf(c.CRDs.Sets()), keysOf(c.CRDs.Installed()))
	c.CRDs.ExternalSecrets.Skip, c.CRDs.CloudNativePG.Skip = true, true
	assert.Equal(t, []string{"gatewayAPI", "certManager", "victoriaMetrics", "prometheusOperator", "rook", "cephCSI"},
		keysOf(c.CRDs.Installed()))
	for _, set := range c.CRDs.Sets() {
		set.Source.Skip = true
	}
	assert.Empty(t, c.CRDs.Installed())
}

func TestCRDs_AreNotSkippedIfAnotherSettingNeedsThem(t *testing.T) {
	skip := func(c *cluster.Cluster) { c.CRDs.CertManager.Skip, c.CRDs.GatewayAPI.Skip = true, true }
	assert.ElementsMatch(t, []string{
		"crds.certManager.skip: true leaves out what cert-manager needs before it starts; remove it, or set certManager.enabled: false",
		"crds.gatewayAPI.skip: true leaves out what cilium.gatewayAPI needs before Cilium starts; remove it, or set cilium.gatewayAPI: false",
	}, problemsOf(t, skip))
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
		skip(c)
		c.CertManager.Enabled, c.Cilium.GatewayAPI = false, false
	}))
}
