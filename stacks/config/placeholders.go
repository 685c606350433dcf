package config

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"
)

// ProxmoxPlaceholder has the form of a token for the Proxmox VE API. No server knows it.
const ProxmoxPlaceholder = "preview@pve!preview=00000000-0000-0000-0000-000000000000"

// Placeholders are values that stand for the secrets of a stack, by their keys, in a preview and in tests. Each has the form that the
// program checks, is made for one run, and gives access to nothing.
type Placeholders map[string]string

// NewPlaceholders returns a placeholder for every secret key of the model.
func NewPlaceholders() (Placeholders, error) {
	sealing, certificate, err := sealingPair(time.Hour)
	if err != nil {
		return nil, err
	}
	old, oldCertificate, err := sealingPair(2 * time.Hour) // the newest certificate is the one that is offered
	if err != nil {
		return nil, err
	}
	identity, err := sshKey()
	if err != nil {
		return nil, err
	}
	ageKey, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	authority, err := authority()
	if err != nil {
		return nil, err
	}
	text := rand.Text()
	login := fmt.Sprintf(`{"auths": {"*": {"username": "preview", "password": %q}}}`, text)
	return Placeholders{
		"gitPassword":             text,
		"gitIdentity":             identity,
		"githubAppPrivateKey":     sealing, // RSA in PEM, too
		"ociConfig":               login,
		"bucketAccessKey":         text,
		"bucketSecretKey":         text,
		"fluxRegistryConfig":      login,
		"sopsAgeKey":              ageKey.String() + "\n",
		"snapshotIdentity":        ageKey.String() + "\n",
		"snapshotAccessKey":       text,
		"snapshotSecretKey":       text,
		"sealedSecretsKey":        sealing,
		"sealedSecretsCert":       certificate,
		"sealedSecretsOldKeys":    old + oldCertificate,
		"onepasswordCredentials":  connectCredentials(text),
		"onepasswordToken":        connectToken(text),
		"onepasswordStorageToken": connectToken(text),
		"meshCA":                  authority,
		"proxmoxApiToken":         ProxmoxPlaceholder,
		"talosSecretPatches":      "{}",
	}, nil
}

func connectCredentials(text string) string {
	return fmt.Sprintf(`{"version": "2", "deviceUuid": "preview", "verifier": {"salt": %q}, `+
		`"encCredentials": {"kid": "preview"}, "uniqueKey": {"kid": "preview"}}`, text)
}

func connectToken(text string) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg": "none"}`) + "." + part(`{"sub": "preview"}`) + "." + part(text)
}

func sshKey() (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(key, "preview")
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(block)), nil
}

// sealingPair returns a key of sealed-secrets and its certificate, of an age.
func sealingPair(age time.Duration) (key, certificate string, err error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", "", err
	}
	certificate, err = selfSigned("sealed-secrets", false, age, &private.PublicKey, private)
	return encoded("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private)), certificate, err
}

// authority returns a CA of a mesh with its key.
func authority() (string, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	certificate, err := selfSigned("Cilium CA", true, time.Hour, &private.PublicKey, private)
	return certificate + encoded("PRIVATE KEY", der), err
}

func selfSigned(name string, isCA bool, age time.Duration, public, private any) (string, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: isCA, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-age), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	if isCA {
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return "", fmt.Errorf("certificate of a placeholder: %w", err)
	}
	return encoded("CERTIFICATE", der), nil
}

func encoded(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
