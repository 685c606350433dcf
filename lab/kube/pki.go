package kube

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	sx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/lab/kube/authority"
)

// certificateLifetime is the lifetime of the certificates that the lab issues from the cluster's CAs, as in Talos.
const certificateLifetime = 365 * 24 * time.Hour

// pki issues the certificates of the components of a control plane, from the CAs in its machine configuration.
type pki struct {
	dir        string
	cluster    *sx509.CertificateAuthority
	aggregator *sx509.CertificateAuthority
	issuing    []byte // certificate of the CA that issues, PEM
	accepted   []byte // this CA and the others that are accepted, PEM

	mu   sync.Mutex
	sans []string // of the API server's certificate
}

// identity is the subject of a client certificate.
type identity struct{ name, group string }

func newPKI(dir string, cfg config.ClusterConfig, sans []string) (*pki, error) {
	var errs []error
	ca := func(path string, pair *sx509.PEMEncodedCertificateAndKey) *sx509.CertificateAuthority {
		if pair == nil || len(pair.Key) == 0 {
			errs = append(errs, fmt.Errorf("%s: certificate or key missing; only a control plane's configuration carries them", path))
			return nil
		}
		c, err := sx509.NewCertificateAuthorityFromCertificateAndKey(pair)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		return c
	}
	p := &pki{dir: dir, sans: sans, cluster: ca("cluster.ca", cfg.IssuingCA()), aggregator: ca("cluster.aggregatorCA", cfg.AggregatorCA())}
	if cfg.ServiceAccount() == nil {
		errs = append(errs, errors.New("cluster.serviceAccount.key: missing"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.issuing, p.accepted = cfg.IssuingCA().Crt, authority.Accepted(cfg)
	return p, nil
}

// writeAll writes the files of all components. It replaces those of an earlier start. Like Talos, it gives kube-controller-manager only the
// CA that issues. API servers also accept clients of the lab's own CA.
func (p *pki) writeAll(cfg config.ClusterConfig, server string, lab []byte) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	serviceAccount, err := cfg.ServiceAccount().GetKey()
	if err != nil {
		return fmt.Errorf("cluster.serviceAccount.key: %w", err)
	}
	files := map[string][]byte{
		"accepted-ca.crt":     append(append(slices.Clone(p.accepted), '\n'), lab...),
		"ca.crt":              p.issuing,
		"ca.key":              cfg.IssuingCA().Key,
		"aggregator-ca.crt":   cfg.AggregatorCA().Crt,
		"service-account.key": serviceAccount.GetPrivateKeyPEM(),
		"service-account.pub": serviceAccount.GetPublicKeyPEM(),
	}
	for name, c := range map[string]struct {
		ca *sx509.CertificateAuthority
		identity
	}{
		"apiserver-kubelet-client": {p.cluster, identity{"apiserver-kubelet-client", "system:masters"}},
		"front-proxy-client":       {p.aggregator, identity{"front-proxy-client", ""}},
	} {
		pair, err := clientPair(c.ca, c.identity)
		if err != nil {
			return fmt.Errorf("certificate %s: %w", name, err)
		}
		files[name+".crt"], files[name+".key"] = pair.CrtPEM, pair.KeyPEM
	}
	for name, id := range map[string]identity{
		"admin":              {"admin", "system:masters"},
		"controller-manager": {"system:kube-controller-manager", "system:kube-controller-manager"},
		"scheduler":          {"system:kube-scheduler", "system:kube-scheduler"},
	} {
		pair, err := clientPair(p.cluster, id)
		if err != nil {
			return fmt.Errorf("certificate %s: %w", name, err)
		}
		if files[name+".kubeconfig"], err = kubeconfig(server, p.accepted, pair); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := p.write(name, content); err != nil {
			return err
		}
	}
	return p.issueServer()
}

// addSAN adds an address to the API server's certificate. kube-apiserver reloads the file by itself.
func (p *pki) addSAN(san string) error {
	p.mu.Lock()
	known := slices.Contains(p.sans, san)
	if !known {
		p.sans = append(p.sans, san)
	}
	p.mu.Unlock()
	if known {
		return nil
	}
	return p.issueServer()
}

func (p *pki) issueServer() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pair, err := p.serverPair("kube-apiserver", "kube-master", p.sans)
	if err != nil {
		return fmt.Errorf("certificate of kube-apiserver: %w", err)
	}
	if err := p.write("apiserver.key", pair.KeyPEM); err != nil {
		return err
	}
	return p.write("apiserver.crt", pair.CrtPEM)
}

func (p *pki) serverPair(name, group string, sans []string) (*sx509.KeyPair, error) {
	var dns []string
	var ips []net.IP
	for _, s := range sans {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip.AsSlice())
		} else {
			dns = append(dns, s)
		}
	}
	return sx509.NewKeyPair(p.cluster, sx509.CommonName(name), sx509.Organization(group), sx509.DNSNames(dns), sx509.IPAddresses(ips),
		sx509.NotAfter(time.Now().Add(certificateLifetime)), sx509.KeyUsage(x509.KeyUsageDigitalSignature),
		sx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}))
}

func clientPair(ca *sx509.CertificateAuthority, id identity) (*sx509.KeyPair, error) {
	opts := []sx509.Option{sx509.CommonName(id.name), sx509.NotAfter(time.Now().Add(certificateLifetime)),
		sx509.KeyUsage(x509.KeyUsageDigitalSignature), sx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth})}
	if id.group != "" {
		opts = append(opts, sx509.Organization(id.group))
	}
	return sx509.NewKeyPair(ca, opts...)
}

// KubeletTLS is the TLS configuration of a node's kubelet server: a certificate that the kubelet has signed itself, as it
// does without serverTLSBootstrap. A client certificate is asked for and not verified, so that the handler can answer 401.
// The kubelet's own key would be RSA; a hundred of those take too long to make.
func (*ControlPlane) KubeletTLS(node string) (*tls.Config, error) {
	stamp := fmt.Sprintf("@%d", time.Now().Unix())
	ca, err := sx509.NewSelfSignedCertificateAuthority(sx509.ECDSA(true), sx509.CommonName(node+"-ca"+stamp), sx509.NotAfter(time.Now().Add(certificateLifetime)))
	if err != nil {
		return nil, fmt.Errorf("serving certificate of kubelet %s: %w", node, err)
	}
	pair, err := sx509.NewKeyPair(ca, sx509.CommonName(node+stamp), sx509.DNSNames([]string{node}), sx509.NotAfter(time.Now().Add(certificateLifetime)),
		sx509.KeyUsage(x509.KeyUsageDigitalSignature), sx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}))
	if err != nil {
		return nil, fmt.Errorf("serving certificate of kubelet %s: %w", node, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{*pair.Certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}, nil
}

// newLabCA makes the CA of the lab's own clients.
func newLabCA() (*sx509.CertificateAuthority, error) {
	return sx509.NewSelfSignedCertificateAuthority(sx509.ECDSA(true), sx509.CommonName("slipway-lab"),
		sx509.NotAfter(time.Now().Add(certificateLifetime)))
}

// labConfig is a client configuration for the lab itself. It works with the API servers of all control planes, whichever CAs they have. The
// server is not verified: it is a process of the lab, on a loopback address.
func labConfig(server string, ca *sx509.CertificateAuthority) (*rest.Config, error) {
	pair, err := clientPair(ca, identity{"slipway-lab", "system:masters"})
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: server, QPS: 500, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertData: pair.CrtPEM, KeyData: pair.KeyPEM}}, nil
}

// verifies reports whether a client certificate is of one of some CAs.
func verifies(pair *sx509.KeyPair, accepted []byte) bool {
	block, _ := pem.Decode(pair.CrtPEM)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(accepted)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// write replaces a file atomically, because kube-apiserver may be reading it.
func (p *pki) write(name string, content []byte) error {
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func kubeconfig(server string, ca []byte, pair *sx509.KeyPair) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters["default"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos["default"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.CrtPEM, ClientKeyData: pair.KeyPEM}
	c.Contexts["default"] = &clientcmdapi.Context{Cluster: "default", AuthInfo: "default"}
	c.CurrentContext = "default"
	return clientcmd.Write(*c)
}
