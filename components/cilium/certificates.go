package cilium

import (
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// Certificate lifetimes, in hours.
const (
	caHours      = 10 * 365 * 24
	leafHours    = 3 * 365 * 24
	renewalHours = 90 * 24 // an `up` in this time before a leaf certificate expires renews it
)

// Authority is a certificate authority that signs Cilium's certificates. Clusters of one mesh share one.
type Authority struct {
	Certificate pulumi.StringInput // PEM
	PrivateKey  pulumi.StringInput // PEM; secret
}

// issuer creates certificates as resources, so that they stay in the state: certificates outside the state would be new at every
// render.
type issuer struct {
	ctx       *pulumi.Context
	name      string // prefix of resource names
	authority Authority
	opts      pulumi.ResourceOption
}

// newIssuer returns an issuer with the shared CA, or with a new one of the cluster's own if shared is nil.
func newIssuer(ctx *pulumi.Context, name string, shared *Authority, opts pulumi.ResourceOption) (issuer, error) {
	i := issuer{ctx: ctx, name: name, opts: opts}
	if shared != nil {
		i.authority = *shared
		return i, nil
	}
	key, err := newKey(ctx, name+"-ca", opts)
	if err != nil {
		return issuer{}, err
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
		return issuer{}, err
	}
	i.authority = Authority{Certificate: cert.CertPem, PrivateKey: key.PrivateKeyPem}
	return i, nil
}

// issued is a signed certificate with its key, PEM.
type issued struct{ cert, key pulumi.StringOutput }

func (i issuer) issue(what chart.Certificate) (issued, error) {
	name := i.name + "-" + what.Name
	key, err := newKey(i.ctx, name, i.opts)
	if err != nil {
		return issued{}, err
	}
	request := &tls.CertRequestArgs{
		PrivateKeyPem: key.PrivateKeyPem,
		Subject:       tls.CertRequestSubjectArgs{CommonName: pulumi.String(what.CommonName)},
	}
	if len(what.DNSNames) != 0 {
		request.DnsNames = pulumi.ToStringArray(what.DNSNames)
	}
	if len(what.IPs) != 0 {
		request.IpAddresses = pulumi.ToStringArray(what.IPs)
	}
	csr, err := tls.NewCertRequest(i.ctx, name, request, i.opts)
	if err != nil {
		return issued{}, err
	}
	cert, err := tls.NewLocallySignedCert(i.ctx, name, &tls.LocallySignedCertArgs{
		CertRequestPem:      csr.CertRequestPem,
		CaCertPem:           i.authority.Certificate,
		CaPrivateKeyPem:     i.authority.PrivateKey,
		ValidityPeriodHours: pulumi.Int(leafHours),
		EarlyRenewalHours:   pulumi.Int(renewalHours),
		AllowedUses:         pulumi.ToStringArray([]string{"digital_signature", "key_encipherment", what.Use}),
	}, i.opts)
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
