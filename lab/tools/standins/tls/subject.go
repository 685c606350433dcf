package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
)

// Subject is a distinguished name; the fields are optional. Other ones are not modelled.
type Subject struct {
	CommonName   *string `pulumi:"commonName,optional"`
	Organization *string `pulumi:"organization,optional"`
}

// name returns the subject as a distinguished name; nil is an empty name.
func (s *Subject) name() pkix.Name {
	var n pkix.Name
	if s == nil {
		return n
	}
	if s.CommonName != nil {
		n.CommonName = *s.CommonName
	}
	if s.Organization != nil {
		n.Organization = []string{*s.Organization}
	}
	return n
}

// Identity is the subject and the names of a certificate or of a request.
type Identity struct {
	Subject     *Subject `pulumi:"subject,optional"`
	DnsNames    []string `pulumi:"dnsNames,optional"`
	IpAddresses []string `pulumi:"ipAddresses,optional"`
}

// addresses parses the identity's IP addresses, and reports all invalid ones.
func (i *Identity) addresses() (ips []net.IP, err error) {
	var errs []error
	for n, s := range i.IpAddresses {
		ip := net.ParseIP(s)
		if ip == nil {
			errs = append(errs, fmt.Errorf("ipAddresses[%d]: %q is no IP address", n, s))
			continue
		}
		ips = append(ips, ip)
	}
	return ips, errors.Join(errs...)
}

// keyUsages and extKeyUsages are upstream's values of allowedUses, of the latter those that the program uses.
var (
	keyUsages = map[string]x509.KeyUsage{
		"digital_signature":  x509.KeyUsageDigitalSignature,
		"content_commitment": x509.KeyUsageContentCommitment,
		"key_encipherment":   x509.KeyUsageKeyEncipherment,
		"data_encipherment":  x509.KeyUsageDataEncipherment,
		"key_agreement":      x509.KeyUsageKeyAgreement,
		"cert_signing":       x509.KeyUsageCertSign,
		"crl_signing":        x509.KeyUsageCRLSign,
		"encipher_only":      x509.KeyUsageEncipherOnly,
		"decipher_only":      x509.KeyUsageDecipherOnly,
	}
	extKeyUsages = map[string]x509.ExtKeyUsage{
		"server_auth": x509.ExtKeyUsageServerAuth,
		"client_auth": x509.ExtKeyUsageClientAuth,
	}
)

// usages parses allowedUses, and reports all unknown values.
func usages(allowed []string) (key x509.KeyUsage, ext []x509.ExtKeyUsage, err error) {
	var errs []error
	for n, use := range allowed {
		k, isKey := keyUsages[use]
		e, isExt := extKeyUsages[use]
		switch {
		case isKey:
			key |= k
		case isExt:
			ext = append(ext, e)
		default:
			errs = append(errs, fmt.Errorf("allowedUses[%d]: %q is no known use", n, use))
		}
	}
	return key, ext, errors.Join(errs...)
}
