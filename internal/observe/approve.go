package observe

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/kubeapi"
)

// approveEvery is the time between two looks for requests.
const approveEvery = time.Second

var requestsKind = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}

// approve approves what the kubelets of declared nodes ask for, until ctx ends. The tree's approver comes after this gate, and a kubelet
// without a certificate runs no command in a pod, which the gate needs.
func (g *Gate) approve(ctx context.Context) {
	for ctx.Err() == nil {
		g.approveOnce(ctx)
		pause(ctx, approveEvery)
	}
}

// approveOnce approves the requests that are there. What cannot be read or approved is tried again: the checks of the agents say what
// their kubelets lack.
func (g *Gate) approveOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	requests := g.kube.Objects.Resource(requestsKind)
	signer := fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName)
	list, err := requests.List(ctx, metav1.ListOptions{FieldSelector: signer.String()})
	if err != nil {
		return
	}
	nodes := slices.Concat(g.spec.Nodes, g.spec.Others)
	for _, object := range list.Items {
		request, err := kubeapi.Typed[certificatesv1.CertificateSigningRequest](&object)
		if err != nil || !toApprove(&request, nodes) {
			continue
		}
		approved := []any{map[string]any{
			"type": string(certificatesv1.CertificateApproved), "status": "True", "reason": "DeclaredNode",
			"message": "slipway: the stack file declares the node with this name and these addresses",
		}}
		if unstructured.SetNestedSlice(object.Object, approved, "status", "conditions") == nil {
			_, _ = requests.Update(ctx, &object, metav1.UpdateOptions{FieldManager: kubeapi.FieldManager}, "approval")
		}
	}
}

// toApprove reports whether the kubelet of a declared node asks for a certificate for its API, with nothing but the node's own name and
// addresses, and nobody has decided on the request yet.
func toApprove(request *certificatesv1.CertificateSigningRequest, nodes []gate.Machine) bool {
	at := slices.IndexFunc(nodes, func(m gate.Machine) bool { return request.Spec.Username == "system:node:"+m.Name })
	block, _ := pem.Decode(request.Spec.Request)
	if at < 0 || block == nil || request.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(request.Status.Conditions) > 0 {
		return false
	}
	node := nodes[at]
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && asked.CheckSignature() == nil &&
		asked.Subject.CommonName == request.Spec.Username && slices.Equal(asked.Subject.Organization, []string{"system:nodes"}) &&
		len(asked.EmailAddresses)+len(asked.URIs) == 0 &&
		!slices.ContainsFunc(asked.DNSNames, func(name string) bool { return name != node.Name }) &&
		!slices.ContainsFunc(asked.IPAddresses, func(ip net.IP) bool {
			address, valid := netip.AddrFromSlice(ip)
			return !valid || address.Unmap() != node.Address && address.Unmap() != node.Address6
		})
}
