package syntax

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// authority returns a CA, PEM, after a change of its certificate.
func authority(t *testing.T, change func(*x509.Certificate)) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	change(template)
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	bytes, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return asPEM("CERTIFICATE", signed), asPEM("EC PRIVATE KEY", bytes)
}

func TestMeshAuthority_NeedsACertificateThatSignsAndItsKey(t *testing.T) {
	asIs := func(*x509.Certificate) {}
	certificate, key := authority(t, asIs)
	_, another := authority(t, asIs)
	with := func(change func(*x509.Certificate)) []string {
		certificate, key := authority(t, change)
		return []string{certificate + key}
	}
	check := func(text string) *Fault { _, fault := MeshAuthority(text); return fault }
	faults(t, check, map[string][]string{
		"":                                 {certificate + key, key + certificate, "# made for the lab\n" + certificate + "\n" + key},
		"has no certificate in PEM":        {key, "", "secret"},
		"has no private key in PEM":        {certificate},
		"has a key of another certificate": {certificate + another},
		"has more than one certificate and its key":                         {certificate + key + key, certificate + certificate + key},
		"has a key with a passphrase, which nobody has":                     {certificate + asPEM("ENCRYPTED PRIVATE KEY", []byte("x"))},
		"has a block in it that is neither a certificate nor a private key": {certificate + key + asPEM("PUBLIC KEY", []byte("x"))},
		"is in base64 as a whole":                                           {inBase64(certificate + key)},
		"has a key that cannot be read":                                     {certificate + asPEM("PRIVATE KEY", []byte("secret"))},
		"has a certificate that cannot be read":                             {asPEM("CERTIFICATE", []byte("secret")) + key},
		"has a block in it that cannot be read":                             {certificate + strings.Replace(key, "-----END EC", "-----END", 1)},
		"has a certificate that must not sign others": {
			with(func(c *x509.Certificate) { c.IsCA = false })[0],
			with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })[0],
		},
	})
	for want, change := range map[string]func(*x509.Certificate){
		"has a certificate that expired on":    func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"has a certificate that is valid from": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
	} {
		certificate, key := authority(t, change)
		_, fault := MeshAuthority(certificate + key)
		require.NotNil(t, fault)
		assert.Regexp(t, "^"+want+` \d{4}-\d\d-\d\d$`, fault.Problem)
	}
	all, fault := MeshAuthority(key + certificate)
	require.Nil(t, fault)
	assert.Equal(t, KeyPair{Certificate: certificate, Key: key}, all)
	block, _ := pem.Decode([]byte(all.Key))
	assert.NotNil(t, block)
}
