package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Names of algorithms in inputs and outputs.
const (
	algorithmRSA     = "RSA"
	algorithmECDSA   = "ECDSA"
	algorithmED25519 = "ED25519"
)

var curves = map[string]elliptic.Curve{
	"P224": elliptic.P224(), "P256": elliptic.P256(), "P384": elliptic.P384(), "P521": elliptic.P521(),
}

// newKey generates a key; it uses curve for ECDSA only, bits for RSA only.
func newKey(algorithm, curve string, bits int) (crypto.Signer, error) {
	switch algorithm {
	case algorithmRSA:
		return rsa.GenerateKey(rand.Reader, bits)
	case algorithmECDSA:
		c, ok := curves[curve]
		if !ok {
			return nil, fmt.Errorf("ecdsaCurve: %q is not one of P224, P256, P384, P521", curve)
		}
		return ecdsa.GenerateKey(c, rand.Reader)
	case algorithmED25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("algorithm: %q is not one of RSA, ECDSA, ED25519", algorithm)
}

// keyPEM encodes a key in the format of its algorithm: PKCS #1, SEC 1, or PKCS #8 for ED25519.
func keyPEM(key crypto.Signer) (string, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return toPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k)), nil
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(k)
		return toPEM("EC PRIVATE KEY", der), err
	}
	return pkcs8PEM(key)
}

// pkcs8PEM encodes a key as PKCS #8.
func pkcs8PEM(key crypto.Signer) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return toPEM("PRIVATE KEY", der), err
}

// parseKey decodes a key in any of the formats above. Its errors do not contain the input.
func parseKey(field, data string) (crypto.Signer, string, error) {
	block, _ := pem.Decode([]byte(data))
	if block == nil {
		return nil, "", fmt.Errorf("%s: no PEM block found", field)
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, "", fmt.Errorf("%s: PEM block %q is no private key", field, block.Type)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: PEM block %q cannot be read", field, block.Type)
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, algorithmRSA, nil
	case *ecdsa.PrivateKey:
		return k, algorithmECDSA, nil
	case ed25519.PrivateKey:
		return k, algorithmED25519, nil
	}
	return nil, "", fmt.Errorf("%s: unsupported key type %T", field, key)
}

// parsePEM returns the content of the first block, which must be of one of the types.
func parsePEM(field, data string, types ...string) ([]byte, error) {
	block, _ := pem.Decode([]byte(data))
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block found", field)
	}
	if !slices.Contains(types, block.Type) {
		return nil, fmt.Errorf("%s: PEM block is %q, not %q", field, block.Type, types)
	}
	if len(block.Bytes) == 0 {
		return nil, errors.New(field + ": empty PEM block")
	}
	return block.Bytes, nil
}

func toPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
