package trustd

import (
	stdx509 "crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
)

// etcdCertLifetime is the lifetime of the certificates of etcd that a control plane issues.
const etcdCertLifetime = 10 * 365 * 24 * time.Hour

// EtcdCertificates issues the certificates of a node's etcd as Talos does, from the first certificate of the CA.
func EtcdCertificates(from *x509.PEMEncodedCertificateAndKey, addresses []netip.Addr, hostname string) (*secrets.Etcd, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(from)
	if err != nil {
		return nil, fmt.Errorf("failed loading CA from config: %w", err)
	}
	loopback := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}
	out := secrets.NewEtcd()
	certs := out.TypedSpec()
	for _, c := range []struct {
		to     **x509.PEMEncodedCertificateAndKey
		name   string
		server bool
		ips    []netip.Addr
		dns    []string
	}{
		{&certs.Etcd, hostname, true, slices.Concat(addresses, loopback), []string{hostname, "localhost"}},
		{&certs.EtcdPeer, hostname, true, addresses, []string{hostname}},
		{to: &certs.EtcdAdmin, name: "talos"},
		{to: &certs.EtcdAPIServer, name: "kube-apiserver"},
	} {
		usages := []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}
		if c.server {
			usages = append(usages, stdx509.ExtKeyUsageServerAuth)
		}
		var ips []net.IP
		for _, a := range c.ips {
			ips = append(ips, a.AsSlice())
		}
		pair, err := x509.NewKeyPair(ca,
			x509.CommonName(c.name), x509.DNSNames(c.dns), x509.IPAddresses(ips), x509.NotAfter(time.Now().Add(etcdCertLifetime)),
			x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment), x509.ExtKeyUsage(usages))
		if err != nil {
			return nil, fmt.Errorf("failed generating client key pair: %w", err)
		}
		*c.to = x509.NewCertificateAndKeyFromKeyPair(pair)
	}
	return out, nil
}

// Party is one side of a TLS connection in which both sides show a certificate.
type Party struct {
	Trusts []*stdx509.Certificate // CAs whose certificates it accepts
	Issuer *stdx509.Certificate   // CA of its own certificate; nil: it has none
}

// Refusal is the error of a TLS server that does not get a connection with a client; empty if both accept each other.
func (server Party) Refusal(client Party) string {
	switch {
	case !accepts(client, server):
		return "remote error: tls: bad certificate"
	case !accepts(server, client):
		return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
	}
	return ""
}

// accepts tells whether one side accepts the other's certificate. All CAs of etcd have the same subject, so that only the key counts.
func accepts(one, other Party) bool {
	return other.Issuer != nil && slices.ContainsFunc(one.Trusts, func(ca *stdx509.Certificate) bool {
		return string(ca.RawSubjectPublicKeyInfo) == string(other.Issuer.RawSubjectPublicKeyInfo)
	})
}

// Certificates reads the certificates of a bundle in PEM, up to one that cannot be read.
func Certificates(bundle []byte) (out []*stdx509.Certificate) {
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return out
		}
		cert, err := stdx509.ParseCertificate(block.Bytes)
		if err != nil {
			return out
		}
		out = append(out, cert)
	}
}
