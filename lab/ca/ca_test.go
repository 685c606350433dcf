package ca

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAuthority_IssuesACertificateForTheRequestedNameOrAddress(t *testing.T) {
	a, err := New("test")
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", a.Server())
	require.NoError(t, err)
	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(a.PEM()))
	for _, name := range []string{"pve.home.arpa", "127.0.0.1"} {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		require.NoError(t, err, name)
		require.NoError(t, c.Close())
	}
	_, err = tls.Dial("tcp", l.Addr().String(), &tls.Config{ServerName: "pve.home.arpa", RootCAs: x509.NewCertPool()})
	require.Error(t, err, "nobody else trusts it")
}

func TestNewMesh_IsACAWithItsKey(t *testing.T) {
	text, err := NewMesh()
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(text, text)
	require.NoError(t, err)
	require.True(t, pair.Leaf.IsCA)
	require.NoError(t, pair.Leaf.CheckSignatureFrom(pair.Leaf))
}

func TestLoad_SignsWithTheKeyOfAFile(t *testing.T) {
	blocks, err := NewMesh()
	require.NoError(t, err)
	a, err := Load(blocks)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(a.PEM()))
	require.NotContains(t, string(a.PEM()), "PRIVATE KEY")
	issued, err := a.issue("ghcr.io")
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(issued.Certificate[0])
	require.NoError(t, err)
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: "ghcr.io", Roots: roots})
	require.NoError(t, err)
	_, err = Load(a.PEM())
	require.Error(t, err, "without a key")
}
