package kubelet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asking starts a kubelet that asks for its certificate.
func (w *world) asking(t *testing.T, machine string) *Kubelet {
	t.Helper()
	k, err := w.Start(t.Context(), NodeOptions{
		Name: "infra-worker-1", Addresses: []netip.Addr{w.ip}, MachineID: machine, BootID: "1", AsksForCertificate: true,
		TalosVersion: "v1.14.6", KubernetesVersion: "v1.36.6",
	})
	require.NoError(t, err)
	return k
}

// served returns the certificate that the kubelet's API shows.
func (w *world) served() (*x509.Certificate, error) {
	connection, err := tls.Dial("tcp", netip.AddrPortFrom(w.ip, port).String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// requests returns how often a kubelet has asked for a certificate.
func (w *world) requests(t *testing.T) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	list, err := w.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// approve signs a request, as the controller manager does once somebody has approved it.
func (w *world) approve(t *testing.T, request certificatesv1.CertificateSigningRequest) {
	t.Helper()
	block, _ := pem.Decode(request.Spec.Request)
	require.NotNil(t, block)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: asked.Subject, DNSNames: asked.DNSNames, IPAddresses: asked.IPAddresses,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, asked.PublicKey, key)
	require.NoError(t, err)
	request.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue},
	}
	_, err = w.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), &request, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestServing_AKubeletThatAsksForItsCertificateAnswersNobodyBefore(t *testing.T) {
	w := newWorld(t)
	k := w.asking(t, "machine")
	_, err := w.served()
	require.ErrorContains(t, err, "tls: internal error")
	w.eventually(t, func() bool { return len(w.requests(t)) == 1 })
	request := w.requests(t)[0]
	require.Equal(t, certificatesv1.KubeletServingSignerName, request.Spec.SignerName)
	_, err = w.served()
	require.ErrorContains(t, err, "tls: internal error")

	w.eventually(t, w.watches("certificatesigningrequests"))
	w.approve(t, request)
	var shown *x509.Certificate
	w.eventually(t, func() bool { shown, err = w.served(); return err == nil })
	require.Equal(t, "system:node:infra-worker-1", shown.Subject.CommonName)
	require.Equal(t, []string{"infra-worker-1"}, shown.DNSNames)
	require.Equal(t, w.ip.String(), shown.IPAddresses[0].String())

	k.Stop()
	k = w.asking(t, "machine")
	shown, err = w.served()
	require.NoError(t, err, "its disk has the certificate")
	require.EqualValues(t, 7, shown.SerialNumber.Int64())
	require.Len(t, w.requests(t), 1)

	k.Stop()
	w.asking(t, "another machine")
	_, err = w.served()
	require.ErrorContains(t, err, "tls: internal error", "a new machine has an empty disk")
}
