package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Subject is a distinguished name; all fields are optional.
type Subject struct {
	CommonName         *string  `pulumi:"commonName,optional"`
	Country            *string  `pulumi:"country,optional"`
	EmailAddress       *string  `pulumi:"emailAddress,optional"`
	Locality           *string  `pulumi:"locality,optional"`
	Organization       *string  `pulumi:"organization,optional"`
	OrganizationalUnit *string  `pulumi:"organizationalUnit,optional"`
	PostalCode         *string  `pulumi:"postalCode,optional"`
	Province           *string  `pulumi:"province,optional"`
	SerialNumber       *string  `pulumi:"serialNumber,optional"`
	StreetAddresses    []string `pulumi:"streetAddresses,optional"`
}

// oidEmailAddress is the attribute of a distinguished name for an e-mail address (RFC 2985).
var oidEmailAddress = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}

// name returns the subject as a distinguished name; nil is an empty name.
func (s *Subject) name() pkix.Name {
	var n pkix.Name
	if s == nil {
		return n
	}
	one := func(v *string) []string {
		if v == nil || *v == "" {
			return nil
		}
		return []string{*v}
	}
	n.Country, n.Province, n.Locality = one(s.Country), one(s.Province), one(s.Locality)
	n.Organization, n.OrganizationalUnit, n.PostalCode = one(s.Organization), one(s.OrganizationalUnit), one(s.PostalCode)
	n.StreetAddress = s.StreetAddresses
	if s.CommonName != nil {
		n.CommonName = *s.CommonName
	}
	if s.SerialNumber != nil {
		n.SerialNumber = *s.SerialNumber
	}
	for _, address := range one(s.EmailAddress) {
		n.ExtraNames = append(n.ExtraNames, pkix.AttributeTypeAndValue{Type: oidEmailAddress, Value: address})
	}
	return n
}

// Identity is the subject and the names of a certificate or of a request.
type Identity struct {
	Subject     *Subject `pulumi:"subject,optional"`
	DnsNames    []string `pulumi:"dnsNames,optional"`
	IpAddresses []string `pulumi:"ipAddresses,optional"`
	Uris        []string `pulumi:"uris,optional"`
}

// addresses parses the identity's IP addresses and URIs, and reports all invalid ones.
func (i *Identity) addresses() (ips []net.IP, uris []*url.URL, err error) {
	var errs []error
	for n, s := range i.IpAddresses {
		ip := net.ParseIP(s)
		if ip == nil {
			errs = append(errs, fmt.Errorf("ipAddresses[%d]: %q is no IP address", n, s))
			continue
		}
		ips = append(ips, ip)
	}
	for n, s := range i.Uris {
		u, err := url.Parse(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("uris[%d]: %w", n, err))
			continue
		}
		uris = append(uris, u)
	}
	return ips, uris, errors.Join(errs...)
}

// keyUsages and extKeyUsages are upstream's values of allowedUses.
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
		"any_extended":                      x509.ExtKeyUsageAny,
		"server_auth":                       x509.ExtKeyUsageServerAuth,
		"client_auth":                       x509.ExtKeyUsageClientAuth,
		"code_signing":                      x509.ExtKeyUsageCodeSigning,
		"email_protection":                  x509.ExtKeyUsageEmailProtection,
		"ipsec_end_system":                  x509.ExtKeyUsageIPSECEndSystem,
		"ipsec_tunnel":                      x509.ExtKeyUsageIPSECTunnel,
		"ipsec_user":                        x509.ExtKeyUsageIPSECUser,
		"timestamping":                      x509.ExtKeyUsageTimeStamping,
		"ocsp_signing":                      x509.ExtKeyUsageOCSPSigning,
		"microsoft_server_gated_crypto":     x509.ExtKeyUsageMicrosoftServerGatedCrypto,
		"netscape_server_gated_crypto":      x509.ExtKeyUsageNetscapeServerGatedCrypto,
		"microsoft_commercial_code_signing": x509.ExtKeyUsageMicrosoftCommercialCodeSigning,
		"microsoft_kernel_code_signing":     x509.ExtKeyUsageMicrosoftKernelCodeSigning,
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
