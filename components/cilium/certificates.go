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
	renewalHours = 90 * 24 // a run in this time before a leaf certificate expires renews it
)

// authority is the certificate authority that signs Cilium's certificates.
type authority struct {
	certificate pulumi.StringInput // PEM
	key         pulumi.StringInput // PEM; secret
}

// authority returns the CA of the cluster's mesh, or nil without one. Another CA replaces all certificates.
func (a *CiliumCoreArgs) authority() *authority {
	if !a.Cluster.Mesh.IsMember() {
		return nil
	}
	shared := a.Cluster.MeshAuthority()
	return &authority{
		certificate: pulumi.String(shared.Certificate),
		key:         pulumi.ToSecret(pulumi.String(shared.Key)).(pulumi.StringOutput),
	}
}

// issuer creates certificates as resources, so that they stay in the state: certificates outside the state would be new at every
// render.
type issuer struct {
	ctx       *pulumi.Context
	name      string // prefix of resource names
	authority authority
	opts      pulumi.ResourceOption
}

// newIssuer returns an issuer with the shared CA, or with a new one of the cluster's own if shared is nil.
func newIssuer(ctx *pulumi.Context, name string, shared *authority, opts pulumi.ResourceOption) (issuer, error) {
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
	i.authority = authority{certificate: cert.CertPem, key: key.PrivateKeyPem}
	return i, nil
}

// issueAll returns the CA's certificate and the PEM documents of certificates, by their path; private keys are secret.
func (i issuer) issueAll(certificates []chart.Certificate) (pulumi.StringMap, error) {
	documents := pulumi.StringMap{chart.PathCA: i.authority.certificate}
	for _, what := range certificates {
		pair, err := i.issue(what)
		if err != nil {
			return nil, err
		}
		documents[what.Path+".cert"], documents[what.Path+".key"] = pair.cert, pulumi.ToSecret(pair.key).(pulumi.StringOutput)
	}
	return documents, nil
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
		CaCertPem:           i.authority.certificate,
		CaPrivateKeyPem:     i.authority.key,
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
