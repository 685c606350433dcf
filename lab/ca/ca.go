// Package ca is the certificate authority of one lab. It signs the certificates of the names in the stack files, which
// are trusted inside the lab's namespace only. Its key is in memory and is lost when the lab ends.
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

const lifetime = 30 * 24 * time.Hour

// Authority issues server certificates on demand.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte

	mu     sync.Mutex
	issued map[string]*tls.Certificate
}

// New creates an authority with a new key. name is the common name of its certificate.
func New(name string) (*Authority, error) {
	key, der, err := selfSigned(name, x509.KeyUsageDigitalSignature, time.Now().Add(lifetime))
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("lab CA: %w", err)
	}
	return &Authority{
		certificate: certificate, key: key, issued: map[string]*tls.Certificate{},
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// Load returns the authority whose certificate and key are PEM blocks.
func Load(blocks []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(blocks, blocks)
	if err != nil {
		return nil, fmt.Errorf("lab CA: %w", err)
	}
	key, is := pair.PrivateKey.(crypto.Signer)
	if !is || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("lab CA: %s cannot sign certificates", pair.Leaf.Subject)
	}
	return &Authority{
		certificate: pair.Leaf, key: key, issued: map[string]*tls.Certificate{},
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Leaf.Raw}),
	}, nil
}

// NewMesh creates a CA for the mesh of a lab's clusters, and returns what a stack's meshCA is: private key and certificate, PEM.
func NewMesh() ([]byte, error) {
	key, der, err := selfSigned("Cilium CA", x509.KeyUsageCRLSign, time.Now().AddDate(10, 0, 0)) // as that of `make mesh-ca`
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("mesh CA: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}

// selfSigned makes the key and the certificate of a CA, which may be used for more than signing certificates.
func selfSigned(name string, more x509.KeyUsage, until time.Time) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("lab CA: %w", err)
	}
	template, err := template(name)
	if err != nil {
		return nil, nil, err
	}
	template.NotAfter, template.IsCA, template.BasicConstraintsValid = until, true, true
	template.KeyUsage = x509.KeyUsageCertSign | more
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("lab CA: %w", err)
	}
	return key, der, nil
}

// PEM is the authority's certificate, for SSL_CERT_FILE.
func (a *Authority) PEM() []byte { return a.pem }

// Server is a TLS configuration with a certificate for the name that the client asks for. A client that connects to an
// address asks for no name; it gets a certificate for that address.
func (a *Authority) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			name := hello.ServerName
			if name == "" {
				host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
				if err != nil {
					return nil, err
				}
				name = host
			}
			return a.issue(name)
		},
	}
}

func (a *Authority) issue(name string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.issued[name]; ok {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(name)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("lab CA: certificate for %s: %w", name, err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}
	a.issued[name] = c
	return c, nil
}

func template(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("lab CA: serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(lifetime),
	}, nil
}
