package main

import (
	"crypto"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"time"
)

// CertArgs are the inputs of both kinds of certificate.
type CertArgs struct {
	AllowedUses         []string `pulumi:"allowedUses"`
	ValidityPeriodHours int      `pulumi:"validityPeriodHours"`
	EarlyRenewalHours   int      `pulumi:"earlyRenewalHours,optional"` // stored only
	IsCaCertificate     bool     `pulumi:"isCaCertificate,optional"`
	SetSubjectKeyId     bool     `pulumi:"setSubjectKeyId,optional"`
}

// CertState are the outputs of both kinds of certificate.
type CertState struct {
	CertPem           string `pulumi:"certPem"`
	ReadyForRenewal   bool   `pulumi:"readyForRenewal"`
	ValidityStartTime string `pulumi:"validityStartTime"` // RFC 3339
	ValidityEndTime   string `pulumi:"validityEndTime"`   // RFC 3339
}

// issue completes the template, whose subject and names are set, and signs it with the parent's key. It returns the
// serial number, which is the resource's id. A nil parent means self-signed.
func (s *CertState) issue(args CertArgs, template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (id string, err error) {
	if template.KeyUsage, template.ExtKeyUsage, err = usages(args.AllowedUses); err != nil {
		return "", err
	}
	if args.ValidityPeriodHours < 0 {
		return "", fmt.Errorf("validityPeriodHours: %d is negative", args.ValidityPeriodHours)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128)); err != nil {
		return "", err
	}
	template.NotBefore = time.Now()
	template.NotAfter = template.NotBefore.Add(time.Duration(args.ValidityPeriodHours) * time.Hour)
	template.BasicConstraintsValid = true
	template.IsCA = args.IsCaCertificate
	if args.SetSubjectKeyId {
		if template.SubjectKeyId, err = subjectKeyID(public); err != nil {
			return "", err
		}
	}
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return "", err
	}
	s.CertPem = toPEM("CERTIFICATE", der)
	s.ValidityStartTime = template.NotBefore.Format(time.RFC3339)
	s.ValidityEndTime = template.NotAfter.Format(time.RFC3339)
	return template.SerialNumber.String(), nil
}

// subjectKeyID is the hash of the public key's bits (RFC 5280, 4.2.1.2, method 1).
func subjectKeyID(public crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		PublicKey asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return nil, err
	}
	sum := sha1.Sum(info.PublicKey.Bytes)
	return sum[:], nil
}
