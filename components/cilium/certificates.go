package cilium

import (
	"strings"

	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Certificate lifetimes, in hours.
const (
	caHours      = 10 * 365 * 24
	leafHours    = 3 * 365 * 24
	renewalHours = 90 * 24 // before the end of a leaf's life, the next `up` makes a new one
)

// Authority is a certificate authority to sign Cilium's certificates with. Clusters of one mesh share one.
type Authority struct {
	Certificate pulumi.StringInput // PEM
	PrivateKey  pulumi.StringInput // PEM; secret
}

// certificates are resources, so that they are made once and stay: what is not in state is made anew by every render.
type certificates struct {
	ctx       *pulumi.Context
	name      string // prefix of the resources' names
	authority Authority
	opts      pulumi.ResourceOption
}

// newAuthority makes the cluster a CA of its own.
func newAuthority(ctx *pulumi.Context, name string, opts pulumi.ResourceOption) (Authority, error) {
	key, err := newKey(ctx, name+"-ca", opts)
	if err != nil {
		return Authority{}, err
	}
	cert, err := tls.NewSelfSignedCert(ctx, name+"-ca", &tls.SelfSignedCertArgs{
		PrivateKeyPem:       key.PrivateKeyPem,
		Subject:             tls.SelfSignedCertSubjectArgs{CommonName: pulumi.String("Cilium CA")},
		IsCaCertificate:     pulumi.Bool(true),
		SetSubjectKeyId:     pulumi.Bool(true),
		ValidityPeriodHours: pulumi.Int(caHours),
		AllowedUses:         pulumi.ToStringArray([]string{"cert_signing", "crl_signing", "digital_signature"}),
	}, opts)
	if err != nil {
		return Authority{}, err
	}
	return Authority{Certificate: cert.CertPem, PrivateKey: key.PrivateKeyPem}, nil
}

// issued is a signed certificate with its key, PEM.
type issued struct{ cert, key pulumi.StringOutput }

// issue makes a certificate for one DNS name, for the given uses. The agents and the relay check both sides of a
// connection, so a certificate is for a server or for a client, not for both.
func (c certificates) issue(what, dnsName, use string) (issued, error) {
	name := c.name + "-" + what
	key, err := newKey(c.ctx, name, c.opts)
	if err != nil {
		return issued{}, err
	}
	request, err := tls.NewCertRequest(c.ctx, name, &tls.CertRequestArgs{
		PrivateKeyPem: key.PrivateKeyPem,
		Subject:       tls.CertRequestSubjectArgs{CommonName: pulumi.String(dnsName)},
		DnsNames:      pulumi.ToStringArray([]string{dnsName}),
	}, c.opts)
	if err != nil {
		return issued{}, err
	}
	cert, err := tls.NewLocallySignedCert(c.ctx, name, &tls.LocallySignedCertArgs{
		CertRequestPem:      request.CertRequestPem,
		CaCertPem:           c.authority.Certificate,
		CaPrivateKeyPem:     c.authority.PrivateKey,
		ValidityPeriodHours: pulumi.Int(leafHours),
		EarlyRenewalHours:   pulumi.Int(renewalHours),
		AllowedUses:         pulumi.ToStringArray([]string{"digital_signature", "key_encipherment", use}),
	}, c.opts)
	if err != nil {
		return issued{}, err
	}
	return issued{cert: cert.CertPem, key: key.PrivateKeyPem}, nil
}

func newKey(ctx *pulumi.Context, name string, opts pulumi.ResourceOption) (*tls.PrivateKey, error) {
	return tls.NewPrivateKey(ctx, name, &tls.PrivateKeyArgs{
		Algorithm:  pulumi.String("ECDSA"),
		EcdsaCurve: pulumi.String("P256"),
	}, opts)
}

// hubbleServerName is the name that the agents' Hubble servers answer to, as the chart itself would issue it.
func hubbleServerName(cluster string) string {
	return "*." + strings.ReplaceAll(cluster, ".", "-") + ".hubble-grpc.cilium.io"
}

// hubbleRelayName is the relay's, as the chart itself would issue it.
const hubbleRelayName = "*.hubble-relay.cilium.io"
