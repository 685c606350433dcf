package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi-go-provider/infer"
)

// LocallySignedCert is the resource tls:index/locallySignedCert:LocallySignedCert. Every change replaces it.
type LocallySignedCert struct{}

// LocallySignedCertArgs are the inputs, with the SDK's names.
type LocallySignedCertArgs struct {
	CertArgs
	CertRequestPem  string `pulumi:"certRequestPem"`
	CaCertPem       string `pulumi:"caCertPem"`
	CaPrivateKeyPem string `pulumi:"caPrivateKeyPem" provider:"secret"`
}

// LocallySignedCertState is what the engine stores.
type LocallySignedCertState struct {
	LocallySignedCertArgs
	CertState
	CaKeyAlgorithm string `pulumi:"caKeyAlgorithm"`
}

// Annotate sets the resource's token.
func (*LocallySignedCert) Annotate(a infer.Annotator) {
	a.SetToken("index/locallySignedCert", "LocallySignedCert")
}

// Create signs the request with the certificate authority's key.
func (*LocallySignedCert) Create(_ context.Context, req infer.CreateRequest[LocallySignedCertArgs]) (infer.CreateResponse[LocallySignedCertState], error) {
	in := req.Inputs
	resp := infer.CreateResponse[LocallySignedCertState]{Output: LocallySignedCertState{LocallySignedCertArgs: in}}
	if req.DryRun {
		return resp, nil
	}
	request, requestErr := parseRequest(in.CertRequestPem)
	ca, caErr := parseCertificate("caCertPem", in.CaCertPem)
	key, algorithm, keyErr := parseKey("caPrivateKeyPem", in.CaPrivateKeyPem)
	if err := errors.Join(requestErr, caErr, keyErr); err != nil {
		return resp, err
	}
	template := &x509.Certificate{
		Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
	}
	id, err := resp.Output.issue(in.CertArgs, template, ca, request.PublicKey, key)
	resp.ID, resp.Output.CaKeyAlgorithm = id, algorithm
	return resp, err
}

func parseRequest(data string) (*x509.CertificateRequest, error) {
	der, err := parsePEM("certRequestPem", data, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")
	if err != nil {
		return nil, err
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("certRequestPem: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("certRequestPem: %w", err)
	}
	return request, nil
}

func parseCertificate(field, data string) (*x509.Certificate, error) {
	der, err := parsePEM(field, data, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return certificate, nil
}
