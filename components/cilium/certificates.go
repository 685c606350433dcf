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
	renewalHours = 90 * 24 // an `up` in this time before a leaf certificate expires renews it
)

// certificate describes a certificate, and its key, that the chart takes.
type certificate struct {
	name  string   // name of the resources, after the component's name
	path  string   // path of the chart's values cert and key
	use   string   // for a server or for a client, not for both: agents, relay and etcd check both sides of a connection
	cn    string   // common name; etcd uses it as the client's user name
	names []string // DNS names
	ips   []string

	of func(*Keys) *Pair
}

// certificates returns the certificates that the enabled parts need, with the names that the chart itself would give them.
// Hubble's UI needs none: it connects to the relay inside the cluster, where the relay's server uses no TLS.
func (v Values) certificates() (needed []certificate) {
	if v.Cilium.Hubble.Enabled {
		server := "*." + v.Identity.Name + ".hubble-grpc.cilium.io"
		needed = append(needed, certificate{
			name: "hubble-server", path: "hubble.tls.server", use: "server_auth", cn: server, names: []string{server},
			of: func(k *Keys) *Pair { return &k.Server },
		})
	}
	if v.Cilium.Hubble.HasRelay() {
		const relay = "*.hubble-relay.cilium.io"
		needed = append(needed, certificate{
			name: "hubble-relay", path: "hubble.relay.tls.client", use: "client_auth", cn: relay, names: []string{relay},
			of: func(k *Keys) *Pair { return &k.Relay },
		})
	}
	if v.Mesh {
		const server = "clustermesh-apiserver.cilium.io"
		needed = append(needed,
			certificate{
				name: "mesh-server", path: "clustermesh.apiserver.tls.server", use: "server_auth", cn: server,
				names: []string{server, "*.mesh.cilium.io", "clustermesh-apiserver." + ReleaseNamespace + ".svc"},
				ips:   []string{"127.0.0.1", "::1"},
				of:    func(k *Keys) *Pair { return &k.Mesh.Server },
			},
			certificate{
				name: "mesh-admin", path: "clustermesh.apiserver.tls.admin", use: "client_auth", cn: "admin-" + v.Identity.Name,
				of: func(k *Keys) *Pair { return &k.Mesh.Admin },
			},
			certificate{
				name: "mesh-remote", path: "clustermesh.apiserver.tls.remote", use: "client_auth", cn: "remote",
				of: func(k *Keys) *Pair { return &k.Mesh.Remote },
			})
	}
	return needed
}

// pathCA is the path of the chart's value for the CA's certificate. The CA's private key is never put into the cluster: its
// owner can impersonate any part of Cilium, and nothing in the cluster needs it.
const pathCA = "tls.ca.cert"

// place sets values at their dotted paths in a tree, and returns the tree.
func place(tree, values map[string]any) map[string]any {
	for path, value := range values {
		keys := strings.Split(path, ".")
		at := tree
		for _, key := range keys[:len(keys)-1] {
			below, ok := at[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[key] = below
			}
			at = below
		}
		at[keys[len(keys)-1]] = value
	}
	return tree
}

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

func (i issuer) issue(what certificate) (issued, error) {
	name := i.name + "-" + what.name
	key, err := newKey(i.ctx, name, i.opts)
	if err != nil {
		return issued{}, err
	}
	request := &tls.CertRequestArgs{
		PrivateKeyPem: key.PrivateKeyPem,
		Subject:       tls.CertRequestSubjectArgs{CommonName: pulumi.String(what.cn)},
	}
	if len(what.names) != 0 {
		request.DnsNames = pulumi.ToStringArray(what.names)
	}
	if len(what.ips) != 0 {
		request.IpAddresses = pulumi.ToStringArray(what.ips)
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
		AllowedUses:         pulumi.ToStringArray([]string{"digital_signature", "key_encipherment", what.use}),
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
