// Package talosapitest serves Talos APIs in tests.
package talosapitest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	stdx509 "crypto/x509"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Address is that of each API.
var Address = netip.MustParseAddr("127.0.0.1")

// AddressOf returns an address for a node's name, always the same one.
func AddressOf(name string) netip.Addr {
	sum := sha256.Sum256([]byte(name))
	return netip.AddrFrom4([4]byte{10, sum[0], sum[1], sum[2]})
}

// To connects a client to an address, whatever port it asks for.
func To(address net.Addr) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, address.Network(), address.String())
	})
}

// Serve starts an API on a port of 127.0.0.1, with its own CA, until the test ends. A configured machine asks for client certificates. It
// returns how a client connects, and a client's configuration that the machine accepts.
func Serve(t testing.TB, configured bool, register func(*grpc.Server)) (connect grpc.DialOption, client *clientconfig.Config) {
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
	return To(listener.Addr()), clientconfig.NewConfig("infra", nil, ca.CrtPEM, leaf(stdx509.ExtKeyUsageClientAuth))
}
