package observe

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// approveEvery is the time between two looks for requests.
const approveEvery = time.Second

var requestsKind = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}

// approve approves what the kubelets of declared nodes ask for, until ctx ends. The tree's approver comes after this gate, and a kubelet
// without a certificate runs no command in a pod, which the gate needs.
func (g *Gate) approve(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, approveEvery) {
		g.approveOnce(ctx)
	}
}

// approveOnce approves the requests that are there, and notes why others of declared nodes are not approved. All is tried again.
func (g *Gate) approveOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	nodes, refused := slices.Concat(g.spec.Nodes, g.spec.Others), map[string]string{}
	defer g.update(func(seen *gate.Cluster) { seen.Uncertified = refused })
	requests := g.kube.Objects.Resource(requestsKind)
	signer := fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName)
	list, err := requests.List(ctx, metav1.ListOptions{FieldSelector: signer.String()})
	if err != nil {
		for _, node := range nodes {
			refused[node.Name] = "the requests for certificates cannot be read: " + err.Error()
		}
		return
	}
	for _, object := range list.Items {
		request, err := kubeapi.Typed[certificatesv1.CertificateSigningRequest](&object)
		if err != nil { // then nobody knows who asks, and the kubelet's own failure shows
			continue
		}
		node, asks := whoAsks(&request, nodes)
		if !asks {
			continue
		}
		why := refusal(&request, node)
		if why == "" {
			why = g.approved(ctx, &object)
		}
		if why != "" {
			refused[node.Name] = "the request " + request.Name + " for its kubelet's certificate is not approved: " + why
		}
	}
}

// approved approves a request, and returns why it could not; "" if it has.
func (g *Gate) approved(ctx context.Context, request *unstructured.Unstructured) string {
	conditions := []any{map[string]any{
		"type": string(certificatesv1.CertificateApproved), "status": "True", "reason": "DeclaredNode",
		"message": "slipway: the stack file declares the node with this name and these addresses",
	}}
	err := unstructured.SetNestedSlice(request.Object, conditions, "status", "conditions")
	if err == nil {
		_, err = g.kube.Objects.Resource(requestsKind).Update(ctx, request, metav1.UpdateOptions{FieldManager: kubeapi.FieldManager}, "approval")
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// whoAsks returns the declared node whose kubelet asks for a certificate for its API, if nobody has decided on the request yet.
func whoAsks(request *certificatesv1.CertificateSigningRequest, nodes []gate.Machine) (node gate.Machine, asks bool) {
	at := slices.IndexFunc(nodes, func(m gate.Machine) bool { return request.Spec.Username == "system:node:"+m.Name })
	if at < 0 || request.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(request.Status.Conditions) > 0 {
		return gate.Machine{}, false
	}
	return nodes[at], true
}

// refusal returns why a node's request is not approved: it is for something else than the node's own name and addresses. "" if it is not.
func refusal(request *certificatesv1.CertificateSigningRequest, node gate.Machine) string {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return "it is no PEM"
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = asked.CheckSignature()
	}
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	switch organization := asked.Subject.Organization; {
	case asked.Subject.CommonName != request.Spec.Username || !slices.Equal(organization, []string{"system:nodes"}):
		return fmt.Sprintf("it is for %s in %v", asked.Subject.CommonName, organization)
	case len(asked.EmailAddresses)+len(asked.URIs) > 0:
		return "it is for an email address or a URI"
	}
	for _, name := range asked.DNSNames {
		if name != node.Name {
			return "it is for the name " + name
		}
	}
	for _, ip := range asked.IPAddresses {
		if address, valid := netip.AddrFromSlice(ip); !valid || address.Unmap() != node.Address && address.Unmap() != node.Address6 {
			return fmt.Sprintf("it is for the address %s, which the stack file does not declare for the node", ip)
		}
	}
	return ""
}
