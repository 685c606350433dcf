package kube

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

func serverCertificate(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
	require.NoError(t, err)
	block, _ := pem.Decode(raw)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}

func TestPKI_TheServerCertificateCoversWhatTalosCoversAndLaterAddresses(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) { c.ClusterConfig.APIServerConfig.CertSANs = []string{"kube.home.arpa"} }).Cluster()
	sans, err := serverSANs(cfg, netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("10.25.11.11"))
	require.NoError(t, err)
	dir := t.TempDir()
	p, err := newPKI(dir, cfg, sans)
	require.NoError(t, err)
	require.NoError(t, p.writeAll(cfg, "https://127.0.1.1:6443", nil))
	c := serverCertificate(t, dir)
	for _, host := range []string{"10.25.11.10", "10.25.11.11", "10.245.0.1", "127.0.1.1", "kube.home.arpa", "kubernetes.default.svc.cluster.local"} {
		require.NoError(t, c.VerifyHostname(host))
	}
	require.Error(t, c.VerifyHostname("10.25.11.12"))
	require.NoError(t, p.addSAN("10.25.11.12"))
	require.NoError(t, serverCertificate(t, dir).VerifyHostname("10.25.11.12"))
}

func TestPKI_RefusesAWorkersConfigurationAndNamesTheFields(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterCA.Key, c.ClusterConfig.ClusterServiceAccount = nil, nil
	}).Cluster()
	_, err := newPKI(t.TempDir(), cfg, nil)
	require.ErrorContains(t, err, "cluster.ca")
	require.ErrorContains(t, err, "cluster.serviceAccount.key")
}
