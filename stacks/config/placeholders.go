package config

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"filippo.io/age"
	"github.com/siderolabs/crypto/x509"
	"golang.org/x/crypto/ssh"
)

// ProxmoxPlaceholder has the form of a token for the Proxmox VE API. No server knows it.
const ProxmoxPlaceholder = "preview@pve!preview=00000000-0000-0000-0000-000000000000"

// Placeholders are values that stand for the secrets of a stack, by their keys, in a preview and in tests. Each has the form that the
// program checks, is made for one run, and gives access to nothing.
type Placeholders map[string]string

// NewPlaceholders returns a placeholder for every secret key of the model.
func NewPlaceholders() (Placeholders, error) {
	sealing, certificate, err1 := authority(time.Hour, x509.RSA(true))
	old, oldCertificate, err2 := authority(2*time.Hour, x509.RSA(true)) // the newest certificate is the one that is offered
	meshKey, meshCertificate, err3 := authority(time.Hour, x509.ECDSA(true))
	identity, err4 := sshKey()
	ageKey, err5 := age.GenerateX25519Identity()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
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
		"meshCA":                  meshCertificate + meshKey,
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

// authority returns the key and the certificate of a CA, whose validity began some time ago.
func authority(age time.Duration, kind x509.Option) (key, certificate string, err error) {
	made, err := x509.NewSelfSignedCertificateAuthority(
		kind, x509.Bits(2048), x509.NotBefore(time.Now().Add(-age)), x509.NotAfter(time.Now().AddDate(10, 0, 0)),
	)
	if err != nil {
		return "", "", fmt.Errorf("certificate of a placeholder: %w", err)
	}
	return string(made.KeyPEM), string(made.CrtPEM), nil
}
