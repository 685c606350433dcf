package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
)

// seal encrypts a value as kubeseal does, for a SealedSecret with a namespace and a name: a key of AES for the certificate's key, and the
// value with that key. What is random in kubeseal is derived from the certificate here, so that the result is the same each time and a
// second run changes nothing. So the value is no secret.
func seal(certificate, namespace, name, value string) (string, error) {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		return "", errors.New("certificate of sealed-secrets: is not PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("certificate of sealed-secrets: %w", err)
	}
	public, ok := parsed.PublicKey.(*rsa.PublicKey)
	if !ok {
		return "", errors.New("certificate of sealed-secrets: its key is not RSA")
	}
	derived := sha3.NewSHAKE256()
	_, _ = derived.Write(block.Bytes)
	session := make([]byte, 32)
	if _, err := derived.Read(session); err != nil {
		return "", err
	}
	encrypted, err := rsa.EncryptOAEP(sha256.New(), derived, public, session, []byte(namespace+"/"+name))
	if err != nil {
		return "", err
	}
	aesBlock, err := aes.NewCipher(session)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(aesBlock)
	if err != nil {
		return "", err
	}
	text := binary.BigEndian.AppendUint16(nil, uint16(len(encrypted))) //nolint:gosec // as long as the certificate's key
	//nolint:gosec // kubeseal has this nonce too: each key of AES encrypts one value
	text = gcm.Seal(append(text, encrypted...), make([]byte, gcm.NonceSize()), []byte(value), nil)
	return base64.StdEncoding.EncodeToString(text), nil
}
