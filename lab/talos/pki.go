package talos

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

// serverCertLifetime is that of the certificates which Talos's trustd signs.
const serverCertLifetime = 24 * time.Hour

// maintenanceTLS is a server certificate that nobody signed; clients without certificate are welcome.
func maintenanceTLS(addresses []netip.Addr) (*tls.Config, error) {
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

// machineTLS is the server side of a configured node's API: clients need a certificate of a machine CA it accepts.
func machineTLS(cfg config.Provider, issuer *x509.PEMEncodedCertificateAndKey, addresses []netip.Addr, names []string) (*tls.Config, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(issuer)
	if err != nil {
		return nil, err
	}
	cert, err := serverCert(ca, addresses, append(names, cfg.Machine().Security().CertSANs()...))
	if err != nil {
		return nil, err
	}
	pool := stdx509.NewCertPool()
	for _, crt := range machineCAs(cfg) {
		if !pool.AppendCertsFromPEM(crt) {
			return nil, errors.New("machine.ca: no certificate in it")
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

// machineCAs returns the certificates of all machine CAs a node accepts, the issuing one first.
func machineCAs(cfg config.Provider) [][]byte {
	var out [][]byte
	if ca := cfg.Machine().Security().IssuingCA(); ca != nil && len(ca.Crt) > 0 {
		out = append(out, ca.Crt)
	}
	for _, ca := range cfg.Machine().Security().AcceptedCAs() {
		out = append(out, ca.Crt)
	}
	return out
}

// issuingCA returns the machine CA with its key; nil on workers, which have no key.
func issuingCA(cfg config.Provider) *x509.PEMEncodedCertificateAndKey {
	if ca := cfg.Machine().Security().IssuingCA(); ca != nil && len(ca.Key) > 0 {
		return ca
	}
	return nil
}

// trusts tells whether a node's trustd would sign for another: the same token, and a CA that the other one accepts.
func trusts(controlPlane, worker config.Provider) bool {
	ca := issuingCA(controlPlane)
	if ca == nil || controlPlane.Machine().Security().Token() != worker.Machine().Security().Token() {
		return false
	}
	for _, crt := range machineCAs(worker) {
		if bytes.Equal(bytes.TrimSpace(crt), bytes.TrimSpace(ca.Crt)) {
			return true
		}
	}
	return false
}
