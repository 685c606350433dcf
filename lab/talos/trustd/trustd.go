// Package trustd makes the certificates of a simulated Talos node, from the CAs of its machine configuration.
package trustd

import (
	"bytes"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// serverCertLifetime is the lifetime of the certificates that Talos's trustd signs.
const serverCertLifetime = 24 * time.Hour

// MaintenanceTLS is the server side of the maintenance API: a certificate of a CA that nobody knows. Clients need no
// certificate.
func MaintenanceTLS(addresses []netip.Addr) (*tls.Config, error) {
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("talos"), x509.NotAfter(time.Now().Add(serverCertLifetime)))
	if err != nil {
		return nil, err
	}
	cert, err := serverCert(ca, addresses, nil)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}, nil
}

// Identity is what a configured node's API shows to others, and whom it lets in.
type Identity struct {
	TLS      *tls.Config // server side; clients need a certificate of an accepted CA
	Issuer   []byte      // CA that has signed the node's certificate, PEM
	Accepted [][]byte    // CAs whose certificates the node accepts, PEM
}

// NewIdentity makes the identity of a node like a control plane's trustd, from the control plane's CAs: a worker accepts the CAs that the
// control plane accepted when it signed. A control plane signs for itself.
func NewIdentity(node, signer config.Provider, addresses []netip.Addr, names []string) (*Identity, error) {
	issuer := IssuingCA(signer)
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(issuer)
	if err != nil {
		return nil, err
	}
	cert, err := serverCert(ca, addresses, append(names, SANs(node)...))
	if err != nil {
		return nil, err
	}
	pool, accepted := stdx509.NewCertPool(), MachineCAs(signer)
	for _, crt := range accepted {
		if !pool.AppendCertsFromPEM(crt) {
			return nil, errors.New("machine.ca: contains no certificate")
		}
	}
	return &Identity{Issuer: issuer.Crt, Accepted: accepted, TLS: &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}}, nil
}

// SANs are the names of a node's certificate that its configuration says. Pods reach the API by the name of its Service.
func SANs(cfg config.Provider) []string {
	sans := slices.Clone(cfg.Machine().Security().CertSANs())
	if cfg.Machine().Features().KubernetesTalosAPIAccess().Enabled() {
		const service = constants.KubernetesTalosAPIServiceName
		sans = append(sans, service, service+"."+constants.KubernetesTalosAPIServiceNamespace)
	}
	return sans
}

// Trusts tells whether a node accepts the certificate of another one. A node that has none yet trusts nobody, and nobody trusts it.
func (i *Identity) Trusts(other *Identity) bool {
	return i != nil && other != nil && contains(i.Accepted, other.Issuer)
}

func serverCert(ca *x509.CertificateAuthority, addresses []netip.Addr, names []string) (tls.Certificate, error) {
	var ips []net.IP
	for _, a := range addresses {
		ips = append(ips, a.AsSlice())
	}
	var dns []string
	for _, n := range names {
		if a, err := netip.ParseAddr(n); err == nil {
			ips = append(ips, a.AsSlice())
		} else if n != "" {
			dns = append(dns, n)
		}
	}
	pair, err := x509.NewKeyPair(ca,
		x509.IPAddresses(ips), x509.DNSNames(dns),
		x509.NotBefore(time.Now().Add(-time.Minute)), x509.NotAfter(time.Now().Add(serverCertLifetime)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}),
	)
	if err != nil {
		return tls.Certificate{}, err
	}
	return *pair.Certificate, nil
}

// MachineCAs returns the certificates of all machine CAs that a node accepts, the issuing one first.
func MachineCAs(cfg config.Provider) [][]byte {
	var out [][]byte
	if ca := cfg.Machine().Security().IssuingCA(); ca != nil && len(ca.Crt) > 0 {
		out = append(out, ca.Crt)
	}
	for _, ca := range cfg.Machine().Security().AcceptedCAs() {
		out = append(out, ca.Crt)
	}
	return out
}

// IssuingCA returns the machine CA with its key; nil on workers, which have no key.
func IssuingCA(cfg config.Provider) *x509.PEMEncodedCertificateAndKey {
	if ca := cfg.Machine().Security().IssuingCA(); ca != nil && len(ca.Key) > 0 {
		return ca
	}
	return nil
}

// Signs tells whether trustd of a control plane signs certificates for a worker: they have the same token, and the worker
// accepts the CA.
func Signs(controlPlane, worker config.Provider) bool {
	ca := IssuingCA(controlPlane)
	if ca == nil || controlPlane.Machine().Security().Token() != worker.Machine().Security().Token() {
		return false
	}
	return contains(MachineCAs(worker), ca.Crt)
}

func contains(all [][]byte, one []byte) bool {
	return slices.ContainsFunc(all, func(crt []byte) bool { return bytes.Equal(bytes.TrimSpace(crt), bytes.TrimSpace(one)) })
}
