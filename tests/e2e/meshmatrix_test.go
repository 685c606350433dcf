//go:build matrix

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/e2e/faults"
)

// TestMatrix_Mesh makes every case of the mesh between two clusters.
func TestMatrix_Mesh(t *testing.T) {
	l := meshLab(t, "matrix-mesh", nil)
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
		if stack == "infra" {
			l.meshCase(t, "the peer was never there", nil, nil)
		}
	}
	gone := func(off ...string) func() {
		return func() { l.must(append(append([]string{"fault"}, off...), "mesh-gone", "apps")...) }
	}
	l.meshCase(t, "the peer is gone", gone(), nil)
	l.meshCase(t, "the peer has been gone for a while", nil, gone("--off"))
	own := l.readAuthority("mesh-ca.pem")
	before := strings.TrimSpace(l.secret("kubectl", "--context=admin@apps", "get", "secret", "-n", "kube-system", serverSecret,
		"-o", "jsonpath={.data}"))
	restore := func() { l.patchServer(before) }
	mesh := []string{"*.mesh.cilium.io", "clustermesh-apiserver.cilium.io", "clustermesh-apiserver.kube-system.svc"}
	for name, crt := range map[string]func() string{
		"the peer's certificate is of another CA": func() string { return newAuthority(t).server(t, time.Now().AddDate(1, 0, 0), mesh...) },
		"the peer's certificate is for another name": func() string {
			return own.server(t, time.Now().AddDate(1, 0, 0), "edge.example.com")
		},
		"the peer's certificate has expired": func() string { return own.server(t, time.Now().AddDate(0, 0, -1), mesh...) },
	} {
		l.meshCase(t, name, func() { l.patchServer(crt()) }, restore)
	}
	l.meshCase(t, "the peer has another id", nil, nil, `s/"name":"apps","id":2/"name":"apps","id":7/`)
	l.meshCase(t, "the peer has this cluster's id", func() { l.runsWithID("apps", "1") }, func() { l.runsWithID("apps", "2") })
	require.Equal(t, "connected", l.sees("infra", "apps"))
}

// meshCase makes a case and waits until the probe says what it must.
func (l *lab) meshCase(t *testing.T, name string, breaks, fixes func(), args ...string) {
	t.Helper()
	at := -1
	for i, c := range faults.MeshCases {
		if c.Name == name {
			at = i
		}
	}
	require.GreaterOrEqual(t, at, 0, "%s is not in the table", name)
	c := faults.MeshCases[at]
	t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
		defer func(outer *testing.T) { l.t = outer }(l.t)
		l.t = t
		if breaks != nil {
			breaks()
		}
		says, began := regexp.MustCompile(c.Says), time.Now()
		l.eventually(name, func() bool {
			out, err := l.probeMesh("infra", append(args, "--timeout", "15s")...)
			return says.MatchString(out) && c.Opens == (err == nil)
		})
		t.Logf("said after %.1f s", time.Since(began).Seconds())
		if fixes != nil {
			fixes()
			require.Equal(t, "connected", l.sees("infra", "apps"))
		}
	})
}

// runsWithID makes a cluster run with an id, as if it had been built with it.
func (l *lab) runsWithID(stack, id string) {
	l.t.Helper()
	l.in("kubectl", "--context=admin@"+stack, "patch", "configmap", "-n", "kube-system", "cilium-config", "--type=merge",
		"-p", `{"data":{"cluster-id":"`+id+`"}}`)
	l.in("kubectl", "--context=admin@"+stack, "delete", "pods", "-n", "kube-system", "-l", "k8s-app in (cilium, clustermesh-apiserver)")
}

// serverSecret has the certificate that a mesh API server shows.
const serverSecret = "clustermesh-apiserver-server-cert"

// patchServer replaces the data of the server's certificate of apps. Its etcd reads the files at every handshake.
func (l *lab) patchServer(data string) {
	l.t.Helper()
	l.secret("kubectl", "--context=admin@apps", "patch", "secret", "-n", "kube-system", serverSecret, "--type=merge",
		"-p", `{"data":`+data+`}`)
}

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  any
}

// readAuthority reads a file of the lab's folder with a CA and its key.
func (l *lab) readAuthority(file string) authority {
	l.t.Helper()
	rest, err := os.ReadFile(filepath.Join(l.home(), file))
	require.NoError(l.t, err)
	var a authority
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			a.cert, err = x509.ParseCertificate(block.Bytes)
		} else {
			a.key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		}
		require.NoError(l.t, err)
	}
	return a
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Cilium CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	return authority{cert, key}
}

// server returns the data of a Secret with a server certificate that ends at a time.
func (a authority) server(t *testing.T, ends time.Time, names ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:   pkix.Name{CommonName: "clustermesh-apiserver.cilium.io"},
		NotBefore: ends.AddDate(-1, 0, 0), NotAfter: ends, KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	data, err := json.Marshal(map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	})
	require.NoError(t, err)
	return string(data)
}
