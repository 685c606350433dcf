package tree

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
)

// In the chart, the API server does not verify metrics-server. The kubelets' certificates are verified unless an argument says otherwise.
func TestMetricsServer_BothConnectionsAreVerified(t *testing.T) {
	layers := clusters(t)["infra"+withMetrics]
	objects, original, err := Render(named(t, layers, "HelmRelease", "metrics-server"))
	require.NoError(t, err)
	require.True(t, original)
	rendered := []Layer{{Objects: objects}}

	service := named(t, rendered, "APIService", "v1beta1.metrics.k8s.io")
	insecure, _, _ := unstructured.NestedBool(service.Object, "spec", "insecureSkipTLSVerify")
	assert.False(t, insecure)
	certificate := named(t, rendered, "Certificate", "metrics-server")
	assert.Equal(t, certificate.GetNamespace()+"/"+certificate.GetName(), service.GetAnnotations()["cert-manager.io/inject-ca-from"])
	issuer := named(t, layers, certificate.Text("spec", "issuerRef", "kind"), certificate.Text("spec", "issuerRef", "name"))
	assert.Equal(t, certificate.GetNamespace(), issuer.GetNamespace())

	w, found := read(named(t, rendered, "Deployment", "metrics-server"))
	require.True(t, found)
	require.Len(t, w.pod.Spec.Containers, 1)
	args := w.pod.Spec.Containers[0].Args
	assert.Contains(t, args, "--tls-cert-file=/tmp/tls-certs/tls.crt")
	assert.False(t, slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "insecure") }), args)
	_, version, err := module("../../tests/tree/sources", "sigs.k8s.io/metrics-server")
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(w.pod.Spec.Containers[0].Image, ":"+version), "the sources are of the release that runs")
}

func TestMetricsServer_ComesAfterTheApproverAndReachesKubelets(t *testing.T) {
	layers := clusters(t)["infra"+withMetrics]
	approver := named(t, layers, "Deployment", cluster.CertificateApprover)
	one := tree{layers: layers}
	in, _, found := one.find("apps", "Deployment", approver.GetNamespace(), approver.GetName())
	require.True(t, found)
	assert.Contains(t, one.closure(named(t, layers, "Kustomization", "metrics-server")), fluxNamespace+"/"+in.Name)

	namespace := named(t, layers, "HelmRelease", "metrics-server").GetNamespace()
	denied := named(t, layers, "CiliumClusterwideNetworkPolicy", "workloads-not-to-nodes")
	expressions, _, err := unstructured.NestedSlice(denied.Object, "spec", "endpointSelector", "matchExpressions")
	require.NoError(t, err)
	require.Len(t, expressions, 1)
	assert.Contains(t, expressions[0].(map[string]any)["values"], namespace)

	for _, layer := range clusters(t)["infra"] {
		for _, object := range layer.Objects {
			assert.NotEqual(t, namespace, object.GetNamespace(), "nothing comes without the key: %s", object.Title())
		}
	}
}
