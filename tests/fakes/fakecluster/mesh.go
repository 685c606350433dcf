package fakecluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MeshServer is the pod of the mesh API server.
const MeshServer = "clustermesh-apiserver-0"

// PutMesh adds what Cilium's chart creates for a mesh: the Service with an address, and the Deployment with one Ready pod.
func PutMesh(t testing.TB, kube *Kube, address string) {
	t.Helper()
	status := ""
	if address != "" {
		status = "loadBalancer: {ingress: [{ip: " + address + "}]}"
	}
	kube.Put(t, Services, `{apiVersion: v1, kind: Service, metadata: {name: clustermesh-apiserver, namespace: kube-system},
  spec: {type: LoadBalancer}, status: {`+status+`}}`)
	kube.Put(t, Deployments, `{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: clustermesh-apiserver, namespace: kube-system, generation: 1},
  spec: {replicas: 1, selector: {matchLabels: {k8s-app: clustermesh-apiserver}}},
  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}}`)
	kube.Put(t, Pods, `{apiVersion: v1, kind: Pod,
  metadata: {name: `+MeshServer+`, namespace: kube-system, labels: {k8s-app: clustermesh-apiserver}},
  spec: {nodeName: infra-worker-1, containers: [{name: etcd, image: x}, {name: apiserver, image: x}, {name: kvstoremesh, image: x}]},
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`)
}

// Remote is a peer as Cilium reports it. The zero value was never connected.
type Remote struct {
	Name             string
	Connected, Ready bool
	ID, Nodes        int    // of the peer; with an ID of 0, its configuration was not read
	Error            string // of the controller that connects an agent; "" if it does not fail
}

// report is the peer in the form of Cilium's RemoteCluster, which leaves out what is false or 0.
func (r Remote) report() map[string]any {
	report := map[string]any{"name": r.Name, "status": "Waiting for initial connection to be established",
		"last-failure": "0001-01-01T00:00:00.000Z"}
	if r.Connected {
		report["connected"], report["status"] = true, "etcd: 1/1 connected, leases=0, lock leases=0, has-quorum=true, ID: 3a"
		report["config"] = map[string]any{"required": true}
	}
	if r.ID > 0 {
		report["config"] = map[string]any{"required": true, "retrieved": true, "cluster-id": r.ID, "kvstoremesh": true, "sync-canaries": true}
	}
	if r.Ready {
		report["ready"] = true
	}
	if r.Nodes > 0 {
		report["num-nodes"] = r.Nodes
	}
	return report
}

// CopiedPeers returns the output of `clustermesh-apiserver kvstoremesh-dbg status -o json`.
func CopiedPeers(peers ...Remote) (string, error) {
	all := []any{}
	for _, peer := range peers {
		all = append(all, peer.report())
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// SeenPeers returns the output of `cilium-dbg status -o json` of an agent in a mesh.
func SeenPeers(peers ...Remote) (string, error) {
	var all, controllers []any
	for _, peer := range peers {
		all = append(all, peer.report())
		status := map[string]any{"success-count": 1}
		if peer.Error != "" {
			status = map[string]any{"consecutive-failure-count": 2, "failure-count": 2, "last-failure-msg": peer.Error}
		}
		controllers = append(controllers, map[string]any{"name": "remote-etcd-" + peer.Name, "status": status})
	}
	text, err := json.Marshal(map[string]any{
		"cilium": map[string]any{"state": "Ok"}, "cluster-mesh": map[string]any{"clusters": all}, "controllers": controllers,
	})
	return string(text), err
}

// MeshCA is the CA of a mesh.
type MeshCA struct {
	Certificate string // PEM

	key    *ecdsa.PrivateKey
	parsed *x509.Certificate
}

// NewMeshCA makes a CA.
func NewMeshCA(t testing.TB) *MeshCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Cilium CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &MeshCA{Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key: key, parsed: parsed}
}

// Serve starts a mesh API server at an address of the loopback, until stop is called or the test ends. Port 0 takes any. The server answers
// no request: it wants a client's certificate, as etcd does. A change may make its certificate another one.
func (ca *MeshCA) Serve(t testing.TB, address string, port int, change func(*x509.Certificate, *tls.Config)) (usedPort int, stop func()) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "clustermesh-apiserver.cilium.io"}, DNSNames: []string{"*.mesh.cilium.io"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.parsed)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	if change != nil {
		change(template, config)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.parsed, key.Public(), ca.key)
	require.NoError(t, err)
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener, server.TLS = listener, config
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // every handshake without a client's certificate is refused
	server.StartTLS()
	t.Cleanup(server.Close)
	return listener.Addr().(*net.TCPAddr).Port, server.Close
}
