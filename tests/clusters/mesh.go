package clusters

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"time"

	"github.com/slipway-platform/slipway/cluster"
)

// Meshed puts a cluster into a mesh with the cluster apps, and gives it a CA.
func Meshed(c *cluster.Cluster) {
	c.Mesh = cluster.Mesh{
		Peers:    []string{"apps"},
		Clusters: []cluster.Peer{{Stack: "apps", Name: "apps", ID: 2, Nodes: 5, Address: netip.MustParseAddr("10.25.12.100")}},
	}
	c.MeshCA = cluster.NewSecret(Authority(func(*x509.Certificate) {}))
}

// Authority returns a CA's certificate and private key, PEM, after a change of the certificate.
func Authority(change func(*x509.Certificate)) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Cilium CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	change(template)
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}
