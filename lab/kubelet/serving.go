package kubelet

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
)

// serving makes the certificate of the kubelet's API: one that it signs itself, or one for which it asks the cluster's CA. It sets the TLS
// configuration of the server.
func (k *Kubelet) serving() (*tls.Config, error) {
	if !k.o.AsksForCertificate {
		return k.c.o.ControlPlane.KubeletTLS(k.o.Name)
	}
	var err error
	if k.certificates, err = k.newCertificates(); err != nil {
		return nil, fmt.Errorf("kubelet %s: %w", k.o.Name, err)
	}
	return &tls.Config{
		ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if current := k.certificates.Current(); current != nil {
				return current, nil
			}
			return nil, errors.New("no serving certificate available for the kubelet") // clients see "tls: internal error"
		},
	}, nil
}

// newCertificates makes the manager of signed certificates: the library of the real kubelet, with its arguments (pkg/kubelet/certificate).
// The files stay on the machine's disk, so that a reboot asks for nothing.
func (k *Kubelet) newCertificates() (certificate.Manager, error) {
	folder := filepath.Join(k.c.o.Dir, "kubelet-pki", cmp.Or(k.o.MachineID, k.o.Name))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	store, err := certificate.NewFileStore("kubelet-server", folder, folder, "", "")
	if err != nil {
		return nil, err
	}
	return certificate.NewManager(&certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return k.own, nil },
		GetTemplate:      k.certificateRequest,
		SignerName:       certificatesv1.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: store,
	})
}

// certificateRequest is for the node's name and its addresses.
func (k *Kubelet) certificateRequest() *x509.CertificateRequest {
	request := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + k.o.Name, Organization: []string{"system:nodes"}},
		DNSNames: []string{k.o.Name},
	}
	for _, address := range k.o.Addresses {
		request.IPAddresses = append(request.IPAddresses, net.IP(address.AsSlice()))
	}
	slices.SortFunc(request.IPAddresses, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	return request
}
