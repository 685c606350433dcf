package rotate

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// apiServer starts an API server with a certificate of the second of two authorities, which accepts clients of that one alone.
func apiServer(t *testing.T) (kubernetesClients, turn.Node) {
	t.Helper()
	s := &Spec{Target: turn.Target{Cluster: "infra"}, Of: Kubernetes}
	var last *x509.CertificateAuthority
	for range 2 {
		made, err := secrets.NewKubernetesCA(time.Now(), nil)
		require.NoError(t, err)
		ca := x509.NewCertificateAndKeyFromCertificateAuthority(made)
		b64 := base64.StdEncoding.EncodeToString
		s.Authorities, last = append(s.Authorities, Authority{Certificate: b64(ca.Crt), Key: b64(ca.Key)}), made
	}
	own, err := x509.NewKeyPair(last, x509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}), x509.NotAfter(time.Now().Add(time.Hour)))
	require.NoError(t, err)
	accepted := stdx509.NewCertPool()
	accepted.AddCert(last.Crt)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := stdx509.VerifyOptions{Roots: accepted, KeyUsages: []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}}
		code := http.StatusUnauthorized
		for _, client := range r.TLS.PeerCertificates {
			if _, err := client.Verify(o); err == nil {
				code = http.StatusForbidden
			}
		}
		w.WriteHeader(code)
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{*own.Certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	c := kubernetesClients{newClients(s, listed(ofCluster)), port}
	return c, turn.Node{Name: "cp-1", Address: netip.MustParseAddr("127.0.0.1")}
}

func TestClients_AskAnAPIServerWithACertificateOfAnAuthority(t *testing.T) {
	c, at := apiServer(t)
	require.NoError(t, c.Ask(t.Context(), at, 1, 0, 1), "403 means that the client is accepted")
	err := c.Ask(t.Context(), at, 0, 1)
	require.ErrorIs(t, err, errUnauthorized)
	require.NotErrorIs(t, err, talosapi.ErrSilent)
	err = c.Ask(t.Context(), at, 1, 0)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	require.ErrorIs(t, err, talosapi.ErrSilent, "no proof that a client is refused")
	c.apiPort = "1"
	require.ErrorIs(t, c.Ask(t.Context(), at, 1, 1), talosapi.ErrSilent)
}
