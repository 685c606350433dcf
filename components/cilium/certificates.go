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

// certificate is one that the chart takes, with the key that belongs to it.
type certificate struct {
	name  string   // of the resources, after the component's
	path  string   // where the chart looks for cert and key
	use   string   // agents, relay and etcd check both sides of a connection: for a server or for a client, not for both
	cn    string   // common name; etcd takes it for the client's user
	names []string // DNS names
	ips   []string

	of func(*Keys) *Pair
}

// certificates are those that the choices need, named as the chart itself would issue them. Hubble's UI needs none: it
// reaches the relay inside the cluster, where relay's server speaks without TLS.
func (v Values) certificates() (needed []certificate) {
	if v.Cilium.Hubble.Enabled {
		server := "*." + v.Identity.Name + ".hubble-grpc.cilium.io"
		needed = append(needed, certificate{
			name: "hubble-server", path: "hubble.tls.server", use: "server_auth", cn: server, names: []string{server},
			of: func(k *Keys) *Pair { return &k.Server },
		})
	}
	if v.relay() {
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

// pathCA is where the chart looks for the CA's certificate. Its private key is handed to nothing: whoever holds it can
// pose as any part of Cilium, and nothing in the cluster needs it.
const pathCA = "tls.ca.cert"

// place puts values at their dotted paths into a tree, and returns the tree.
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

// Authority is a certificate authority to sign Cilium's certificates with. Clusters of one mesh share one.
type Authority struct {
	Certificate pulumi.StringInput // PEM
	PrivateKey  pulumi.StringInput // PEM; secret
}

// issuer makes certificates as resources, so that they are made once and stay: what is not in state is made anew by
// every render.
type issuer struct {
	ctx       *pulumi.Context
	name      string // prefix of the resources' names
	authority Authority
	opts      pulumi.ResourceOption
}

// newIssuer makes the cluster a CA of its own unless one is given.
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
