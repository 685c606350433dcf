// Package talosapitest serves Talos APIs in tests.
package talosapitest

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Serve starts an API on a port of 127.0.0.1, with its own CA, until the test ends. A configured machine asks for client certificates. It
// returns the address with its port, and the configuration of a client that the machine accepts.
func Serve(t testing.TB, configured bool, register func(*grpc.Server)) (address string, client *clientconfig.Config) {
	t.Helper()
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true))
	require.NoError(t, err)
	leaf := func(usage stdx509.ExtKeyUsage, opts ...x509.Option) *x509.PEMEncodedCertificateAndKey {
		opts = append(opts, x509.ExtKeyUsage([]stdx509.ExtKeyUsage{usage}), x509.NotAfter(time.Now().Add(time.Hour)))
		pair, err := x509.NewKeyPair(ca, opts...)
		require.NoError(t, err)
		return x509.NewCertificateAndKeyFromKeyPair(pair)
	}
	own := leaf(stdx509.ExtKeyUsageServerAuth, x509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}))
	pair, err := tls.X509KeyPair(own.Crt, own.Key)
	require.NoError(t, err)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if configured {
		secure.ClientCAs, secure.ClientAuth = stdx509.NewCertPool(), tls.RequireAndVerifyClientCert
		require.True(t, secure.ClientCAs.AppendCertsFromPEM(ca.CrtPEM))
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(secure)))
	register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), clientconfig.NewConfig("infra", nil, ca.CrtPEM, leaf(stdx509.ExtKeyUsageClientAuth))
}
