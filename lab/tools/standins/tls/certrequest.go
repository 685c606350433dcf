package main

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"errors"

	"github.com/pulumi/pulumi-go-provider/infer"
)

// CertRequest is the resource tls:index/certRequest:CertRequest. Every change replaces it.
type CertRequest struct{}

// CertRequestArgs are the inputs, with the SDK's names.
type CertRequestArgs struct {
	Identity
	PrivateKeyPem string `pulumi:"privateKeyPem" provider:"secret"`
}

// CertRequestState is what the engine stores.
type CertRequestState struct {
	CertRequestArgs
	KeyAlgorithm   string `pulumi:"keyAlgorithm"`
	CertRequestPem string `pulumi:"certRequestPem"`
}

// Annotate sets the resource's token.
func (*CertRequest) Annotate(a infer.Annotator) { a.SetToken("index/certRequest", "CertRequest") }

// Create creates and signs the request.
func (*CertRequest) Create(_ context.Context, req infer.CreateRequest[CertRequestArgs]) (infer.CreateResponse[CertRequestState], error) {
	resp := infer.CreateResponse[CertRequestState]{Output: CertRequestState{CertRequestArgs: req.Inputs}}
	if req.DryRun {
		return resp, nil
	}
	key, algorithm, keyErr := parseKey("privateKeyPem", req.Inputs.PrivateKeyPem)
	ips, addressErr := req.Inputs.addresses()
	if err := errors.Join(keyErr, addressErr); err != nil {
		return resp, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     req.Inputs.Subject.name(),
		DNSNames:    req.Inputs.DnsNames,
		IPAddresses: ips,
	}, key)
	if err != nil {
		return resp, err
	}
	sum := sha1.Sum(der)
	resp.ID = hex.EncodeToString(sum[:])
	resp.Output.KeyAlgorithm = algorithm
	resp.Output.CertRequestPem = toPEM("CERTIFICATE REQUEST", der)
	return resp, nil
}
