// Package kubeapitest makes kubeconfigs for API servers of tests.
package kubeapitest

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Kubeconfig returns a kubeconfig in Talos's form for a server, which may use TLS. The client has the same certificate and key, which such
// a server does not check.
func Kubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	cluster, user := map[string]any{"server": server.URL}, map[string]any{}
	if server.TLS != nil {
		certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
		require.NoError(t, err)
		cluster["certificate-authority-data"] = certificate
		user["client-certificate-data"] = certificate
		user["client-key-data"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	}
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin@infra",
		"clusters": []any{map[string]any{"name": "infra", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "admin@infra", "user": user}},
		"contexts": []any{map[string]any{"name": "admin@infra", "context": map[string]any{"cluster": "infra", "user": "admin@infra"}}},
	}, "", " ")
	require.NoError(t, err)
	return string(text)
}
