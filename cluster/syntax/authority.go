package syntax

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"
)

const remedyAuthority = "set what `slipway mesh-ca` prints, the same in every stack of the mesh"

// MeshAuthority reads the certificate of a CA and its private key, in any order.
func MeshAuthority(text string) (KeyPair, *Fault) {
	var all KeyPair
	blocks, cut := pemBlocks(text)
	for _, block := range blocks {
		one, into := string(pem.EncodeToMemory(block)), &all.Key
		switch {
		case block.Type == "CERTIFICATE":
			into = &all.Certificate
		case isEncrypted(block):
			return KeyPair{}, because("has a key with a passphrase, which nobody has", remedyAuthority)
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return KeyPair{}, because("has a block in it that is neither a certificate nor a private key", remedyAuthority)
		}
		if *into != "" {
			return KeyPair{}, because("has more than one certificate and its key", remedyAuthority)
		}
		*into = one
	}
	switch {
	case cut:
		return KeyPair{}, because("has a block in it that cannot be read", remedyPEM)
	case len(blocks) == 0 && isInBase64(text, "-----BEGIN"):
		return KeyPair{}, because("is in base64 as a whole", remedyAuthority)
	case all.Certificate == "":
		return KeyPair{}, because("has no certificate in PEM", remedyAuthority)
	case all.Key == "":
		return KeyPair{}, because("has no private key in PEM", remedyAuthority)
	}
	return all, all.authorityFault(time.Now())
}

// authorityFault checks that a pair can sign certificates.
func (p KeyPair) authorityFault(now time.Time) *Fault {
	certificate, err := firstCertificate(p.Certificate)
	if err != nil {
		return because("has a certificate that cannot be read", remedyPEM)
	}
	pair, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		if p.keyIsReadable() {
			return because("has a key of another certificate", remedyAuthority)
		}
		return because("has a key that cannot be read", remedyPEM)
	}
	_, signs := pair.PrivateKey.(crypto.Signer)
	switch {
	case !certificate.IsCA || !signs || certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return because("has a certificate that must not sign others", remedyAuthority)
	case now.After(certificate.NotAfter):
		return because("has a certificate that expired on "+certificate.NotAfter.UTC().Format(time.DateOnly), remedyAuthority)
	case now.Before(certificate.NotBefore):
		return because("has a certificate that is valid from "+certificate.NotBefore.UTC().Format(time.DateOnly), remedyAuthority)
	}
	return nil
}

func (p KeyPair) keyIsReadable() bool {
	block, _ := pem.Decode(bytes.TrimSpace([]byte(p.Key)))
	if block == nil {
		return false
	}
	_, pkcs1 := x509.ParsePKCS1PrivateKey(block.Bytes)
	_, pkcs8 := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, ec := x509.ParseECPrivateKey(block.Bytes)
	return pkcs1 == nil || pkcs8 == nil || ec == nil
}
