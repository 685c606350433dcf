package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// caYears is how long the CA is valid.
const caYears = 10

// makeCA writes ca.pem, the certificate and the key of the CA that Talos trusts. All versions of Talos have the same, so that a machine
// trusts the lab after an upgrade, too: it is made once and kept in the cache.
func (c *composition) makeCA() error {
	kept := filepath.Join(c.cache, "talos", "ca.pem")
	text, err := os.ReadFile(kept)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newCA(time.Now()); err != nil {
			return err
		}
		err = keep(kept, text)
	}
	if err != nil {
		return fmt.Errorf("CA: %w", err)
	}
	return os.WriteFile(c.path("ca.pem"), text, 0o600)
}

// keep writes a file that only its owner can read; another process sees all of it or nothing.
func keep(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// newCA is a new certificate and its key, as PEM blocks.
func newCA(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Slipway lab: the Internet of a real Talos"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(caYears, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}

// trusted is the certificate of ca.pem, without the key.
func (c *composition) trusted() ([]byte, error) {
	text, err := os.ReadFile(c.path("ca.pem"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s: does not begin with a certificate; remove talos/ca.pem of the cache", c.path("ca.pem"))
	}
	return pem.EncodeToMemory(block), nil
}
