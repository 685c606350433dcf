package main

import (
	"context"
	"crypto/x509"
	"errors"

	"github.com/pulumi/pulumi-go-provider/infer"
)

// SelfSignedCert is the resource tls:index/selfSignedCert:SelfSignedCert. Every change replaces it.
type SelfSignedCert struct{}

// SelfSignedCertArgs are the inputs, with the SDK's names.
type SelfSignedCertArgs struct {
	Identity
	CertArgs
	PrivateKeyPem     string `pulumi:"privateKeyPem" provider:"secret"`
	SetAuthorityKeyId bool   `pulumi:"setAuthorityKeyId,optional"` // stored only: each state of the released plugin has the default
}

// SelfSignedCertState is what the engine stores.
type SelfSignedCertState struct {
	SelfSignedCertArgs
	CertState
	KeyAlgorithm string `pulumi:"keyAlgorithm"`
}

// Annotate sets the resource's token.
func (*SelfSignedCert) Annotate(a infer.Annotator) {
	a.SetToken("index/selfSignedCert", "SelfSignedCert")
}

// Create creates and signs the certificate.
func (*SelfSignedCert) Create(_ context.Context, req infer.CreateRequest[SelfSignedCertArgs]) (infer.CreateResponse[SelfSignedCertState], error) {
	in := req.Inputs
	resp := infer.CreateResponse[SelfSignedCertState]{Output: SelfSignedCertState{SelfSignedCertArgs: in}}
	if req.DryRun {
		return resp, nil
	}
	key, algorithm, keyErr := parseKey("privateKeyPem", in.PrivateKeyPem)
	ips, addressErr := in.addresses()
	if err := errors.Join(keyErr, addressErr); err != nil {
		return resp, err
	}
	template := &x509.Certificate{Subject: in.Subject.name(), DNSNames: in.DnsNames, IPAddresses: ips}
	id, err := resp.Output.issue(in.CertArgs, template, nil, key.Public(), key)
	resp.ID, resp.Output.KeyAlgorithm = id, algorithm
	return resp, err
}
