package observe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/health/gate"
)

const cp1 = "system:node:infra-cp-1"

// ofKubelet is a request as a kubelet writes it, which may be changed before and after it is signed.
func ofKubelet(
	t *testing.T, asks func(*x509.CertificateRequest), changed func(*certificatesv1.CertificateSigningRequest),
) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	asked := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: cp1, Organization: []string{"system:nodes"}},
		DNSNames: []string{"infra-cp-1"}, IPAddresses: []net.IP{net.ParseIP("10.25.11.11"), net.ParseIP("fd25:11::11")},
	}
	asks(asked)
	der, err := x509.CreateCertificateRequest(rand.Reader, asked, key)
	require.NoError(t, err)
	request := &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: "csr"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeletServingSignerName, Username: cp1,
		},
	}
	changed(request)
	return request
}

func TestApprove_OnlyWhatADeclaredNodeAsksForItself(t *testing.T) {
	nodes := []gate.Machine{
		{Name: "infra-worker-1", Address: netip.MustParseAddr("10.25.11.21")},
		{Name: "infra-cp-1", Address: netip.MustParseAddr("10.25.11.11"), Address6: netip.MustParseAddr("fd25:11::11")},
	}
	toApprove := func(request *certificatesv1.CertificateSigningRequest, nodes []gate.Machine) bool {
		node, asks := whoAsks(request, nodes)
		return asks && refusal(request, node) == ""
	}
	asIs, unchanged := func(*x509.CertificateRequest) {}, func(*certificatesv1.CertificateSigningRequest) {}
	assert.True(t, toApprove(ofKubelet(t, asIs, unchanged), nodes))
	assert.False(t, toApprove(ofKubelet(t, asIs, unchanged), nodes[:1]), "a node that is not declared")

	for name, asks := range map[string]func(*x509.CertificateRequest){
		"another name":    func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "kubernetes") },
		"another address": func(r *x509.CertificateRequest) { r.IPAddresses = append(r.IPAddresses, net.ParseIP("10.25.11.10")) },
		"another node":    func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:infra-worker-1" },
		"another group":   func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} },
		"one group more": func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		},
		"an email address": func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"ops@example.com"} },
		"a URI":            func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "cluster"}} },
	} {
		assert.False(t, toApprove(ofKubelet(t, asks, unchanged), nodes), name)
	}
	for name, change := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"another requester": func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = "system:node:infra-worker-1" },
		"another signer": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		},
		"no PEM": func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = nil },
		"denied": func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		},
	} {
		assert.False(t, toApprove(ofKubelet(t, asIs, change), nodes), name)
	}
}

func TestApprove_SaysYesToTheAPIAndWhyNot(t *testing.T) {
	request := ofKubelet(t, func(*x509.CertificateRequest) {}, func(*certificatesv1.CertificateSigningRequest) {})
	other := ofKubelet(t, func(r *x509.CertificateRequest) {
		r.Subject.CommonName, r.DNSNames = "system:node:infra-worker-1", nil
	}, func(r *certificatesv1.CertificateSigningRequest) {
		r.Name, r.Spec.Username = "csr-2", "system:node:infra-worker-1"
	})
	list := certificatesv1.CertificateSigningRequestList{Items: []certificatesv1.CertificateSigningRequest{*request, *other}}
	list.APIVersion, list.Kind = "certificates.k8s.io/v1", "CertificateSigningRequestList"
	var approved []certificatesv1.CertificateSigningRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPut {
			assert.Equal(t, "spec.signerName=kubernetes.io/kubelet-serving", r.URL.Query().Get("fieldSelector"))
			assert.NoError(t, json.NewEncoder(w).Encode(list))
			return
		}
		assert.Equal(t, "/apis/certificates.k8s.io/v1/certificatesigningrequests/csr/approval", r.URL.Path)
		var one certificatesv1.CertificateSigningRequest
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&one))
		approved = append(approved, one)
		assert.NoError(t, json.NewEncoder(w).Encode(one))
	}))
	defer server.Close()
	kube, err := NewKube([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: '"+server.URL+
		"'}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a}]\n"), new(Calls))
	require.NoError(t, err)
	spec := &gate.Spec{Others: []gate.Machine{
		{Name: "infra-cp-1", Address: netip.MustParseAddr("10.25.11.11"), Address6: netip.MustParseAddr("fd25:11::11")},
		{Name: "infra-worker-1", Address: netip.MustParseAddr("10.25.11.21")},
	}}
	g := NewGate(spec, kube, nil)
	g.approveOnce(t.Context())

	require.Len(t, approved, 1)
	assert.Equal(t, request.Spec, approved[0].Spec)
	require.Len(t, approved[0].Status.Conditions, 1)
	assert.Equal(t, certificatesv1.CertificateApproved, approved[0].Status.Conditions[0].Type)
	assert.Equal(t, "True", string(approved[0].Status.Conditions[0].Status))
	g.read(func(seen *gate.Cluster) {
		assert.Equal(t, map[string]string{"infra-worker-1": "the request csr-2 for its kubelet's certificate is not approved: it is for the " +
			"address 10.25.11.11, which the stack file does not declare for the node"}, seen.Uncertified)
	})
}
