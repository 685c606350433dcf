package kubernetes

import (
	stdx509 "crypto/x509"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AdminKubeconfig is a kubeconfig in the form that Talos writes, with a new client certificate of the cluster's CA.
func AdminKubeconfig(cluster config.ClusterConfig) ([]byte, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(cluster.IssuingCA())
	if err != nil {
		return nil, err
	}
	admin := cluster.AdminKubeconfig()
	pair, err := x509.NewKeyPair(ca,
		x509.CommonName(admin.CommonName()), x509.Organization(admin.CertOrganization()),
		x509.NotBefore(time.Now().Add(-10*time.Second)), x509.NotAfter(time.Now().Add(admin.CertLifetime())),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
	)
	if err != nil {
		return nil, err
	}
	cert := x509.NewCertificateAndKeyFromKeyPair(pair)
	var cas []byte
	for _, accepted := range cluster.AcceptedCAs() {
		cas = append(cas, accepted.Crt...)
	}
	cas = append(cas, cluster.IssuingCA().Crt...)
	name, user := cluster.Name(), "admin@"+cluster.Name()
	return clientcmd.Write(clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config",
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cluster.Endpoint().String(), CertificateAuthorityData: cas}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: cert.Crt, ClientKeyData: cert.Key}},
		Contexts:       map[string]*clientcmdapi.Context{user: {Cluster: name, Namespace: "default", AuthInfo: user}},
		CurrentContext: user,
	})
}
