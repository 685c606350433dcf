package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestMetricsServer_NeedsTheTreeCertManagerAndTheFlag(t *testing.T) {
	for says, change := range map[string]func(*cluster.Cluster){
		"": func(c *cluster.Cluster) {
			c.Talos.Kubelet.ExtraArgs = map[string]string{cluster.ServingFlag: "true", "v": "2"}
		},
		"kubernetes.metricsServer: comes with the tree, which nothing applies; remove it, or set gitops.enabled: true": func(
			c *cluster.Cluster) {
			c.GitOps.Enabled = false
		},
		"kubernetes.metricsServer: needs a certificate of cert-manager, which is off; remove it, or set certManager.enabled: true": func(
			c *cluster.Cluster) {
			c.CertManager.Enabled = false
		},
		`talos.kubelet.extraArgs["rotate-server-certificates"]: is false, and kubernetes.metricsServer needs true; remove it`: func(
			c *cluster.Cluster) {
			c.Talos.Kubelet.ExtraArgs = map[string]string{cluster.ServingFlag: "false"}
		},
	} {
		for _, on := range []bool{true, false} {
			c := clusters.Infra(t)
			c.Kubernetes.MetricsServer = on
			change(c)
			var findings cluster.Findings
			c.Complete(&findings)
			if says == "" || !on {
				assert.NotContains(t, findings.All().Error(), "kubernetes.metricsServer")
				continue
			}
			assert.ErrorContains(t, findings.Err(), says)
		}
	}
}

// The kubelet asks for certificates if, and only if, something approves them.
func TestMetricsServer_KubeletsAskForCertificatesAndTheTreeApprovesThem(t *testing.T) {
	c := clusters.Infra(t)
	c.Talos.Kubelet.ExtraArgs = map[string]string{"v": "2"}
	assert.Equal(t, map[string]string{"v": "2"}, c.KubeletArgs())
	assert.NotContains(t, c.Settings(), "METRICS_SERVER")

	c.Kubernetes.MetricsServer = true
	assert.Equal(t, map[string]string{"v": "2", "rotate-server-certificates": "true"}, c.KubeletArgs())
	assert.Equal(t, map[string]string{"v": "2"}, c.Talos.Kubelet.ExtraArgs)
	assert.Equal(t, "release", c.Settings()["METRICS_SERVER"])
}
