package main

import (
	"context"
	"crypto"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
	"golang.org/x/crypto/ssh"
)

// PrivateKey is the resource tls:index/privateKey:PrivateKey. Every change replaces it.
type PrivateKey struct{}

// PrivateKeyArgs are the inputs, with the SDK's names.
type PrivateKeyArgs struct {
	Algorithm  string `pulumi:"algorithm"`           // RSA, ECDSA or ED25519
	EcdsaCurve string `pulumi:"ecdsaCurve,optional"` // P224 (default), P256, P384 or P521
	RsaBits    int    `pulumi:"rsaBits,optional"`    // default 2048
}

// PrivateKeyState is what the engine stores.
type PrivateKeyState struct {
	PrivateKeyArgs
	PrivateKeyPem              string `pulumi:"privateKeyPem" provider:"secret"`
	PrivateKeyPemPkcs8         string `pulumi:"privateKeyPemPkcs8" provider:"secret"`
	PrivateKeyOpenssh          string `pulumi:"privateKeyOpenssh" provider:"secret"`
	PublicKeyPem               string `pulumi:"publicKeyPem"`
	PublicKeyOpenssh           string `pulumi:"publicKeyOpenssh"`
	PublicKeyFingerprintMd5    string `pulumi:"publicKeyFingerprintMd5"`
	PublicKeyFingerprintSha256 string `pulumi:"publicKeyFingerprintSha256"`
}

// Annotate sets the resource's token.
func (k *PrivateKey) Annotate(a infer.Annotator) { a.SetToken("index/privateKey", "PrivateKey") }

// WireDependencies makes the private outputs secret, whatever the program declares.
func (*PrivateKey) WireDependencies(f infer.FieldSelector, _ *PrivateKeyArgs, out *PrivateKeyState) {
	f.OutputField(&out.PrivateKeyPem).AlwaysSecret()
	f.OutputField(&out.PrivateKeyPemPkcs8).AlwaysSecret()
	f.OutputField(&out.PrivateKeyOpenssh).AlwaysSecret()
}

// Annotate declares the defaults.
func (k *PrivateKeyArgs) Annotate(a infer.Annotator) {
	a.SetDefault(&k.EcdsaCurve, "P224")
	a.SetDefault(&k.RsaBits, 2048)
}

// Create generates the key.
func (*PrivateKey) Create(_ context.Context, req infer.CreateRequest[PrivateKeyArgs]) (infer.CreateResponse[PrivateKeyState], error) {
	resp := infer.CreateResponse[PrivateKeyState]{Output: PrivateKeyState{PrivateKeyArgs: req.Inputs}}
	if req.DryRun {
		return resp, nil
	}
	key, err := newKey(req.Inputs.Algorithm, req.Inputs.EcdsaCurve, req.Inputs.RsaBits)
	if err != nil {
		return resp, err
	}
	resp.ID, err = resp.Output.fill(key)
	return resp, err
}

// Check refuses algorithms and curves that do not exist.
func (*PrivateKey) Check(ctx context.Context, req infer.CheckRequest) (infer.CheckResponse[PrivateKeyArgs], error) {
	args, failures, err := infer.DefaultCheck[PrivateKeyArgs](ctx, req.NewInputs)
	if err == nil && len(failures) == 0 && !req.NewInputs.Get("algorithm").IsComputed() {
		switch args.Algorithm {
		case algorithmRSA, algorithmECDSA, algorithmED25519:
		default:
			failures = append(failures, p.CheckFailure{Property: "algorithm", Reason: "not one of RSA, ECDSA, ED25519"})
		}
	}
	return infer.CheckResponse[PrivateKeyArgs]{Inputs: args, Failures: failures}, err
}

// fill sets the key in all formats and returns the resource's id, the hash of the public key.
func (s *PrivateKeyState) fill(key crypto.Signer) (id string, err error) {
	if s.PrivateKeyPem, err = keyPEM(key); err != nil {
		return "", err
	}
	if s.PrivateKeyPemPkcs8, err = pkcs8PEM(key); err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", err
	}
	s.PublicKeyPem = toPEM("PUBLIC KEY", der)
	sum := sha1.Sum(der)
	id = hex.EncodeToString(sum[:])

	// SSH has no P224; then the outputs are empty, as in upstream.
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return id, nil //nolint:nilerr // see above
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return "", err
	}
	s.PrivateKeyOpenssh = string(pem.EncodeToMemory(block))
	s.PublicKeyOpenssh = string(ssh.MarshalAuthorizedKey(public))
	s.PublicKeyFingerprintMd5 = ssh.FingerprintLegacyMD5(public)
	s.PublicKeyFingerprintSha256 = ssh.FingerprintSHA256(public)
	return id, nil
}
