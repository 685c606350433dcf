// Package trustd makes the certificates of a simulated Talos node, from the CAs of its machine configuration.
package trustd

import (
	"bytes"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
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

// MachineTLS is the server side of a configured node's API. Clients need a certificate of a machine CA that the node
// accepts.
func MachineTLS(
	cfg config.Provider, issuer *x509.PEMEncodedCertificateAndKey, addresses []netip.Addr, names []string,
) (*tls.Config, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(issuer)
	if err != nil {
		return nil, err
	}
	cert, err := serverCert(ca, addresses, append(names, cfg.Machine().Security().CertSANs()...))
	if err != nil {
		return nil, err
	}
	pool := stdx509.NewCertPool()
	for _, crt := range MachineCAs(cfg) {
		if !pool.AppendCertsFromPEM(crt) {
			return nil, errors.New("machine.ca: contains no certificate")
		}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}, nil
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
	for _, crt := range MachineCAs(worker) {
		if bytes.Equal(bytes.TrimSpace(crt), bytes.TrimSpace(ca.Crt)) {
			return true
		}
	}
	return false
}
