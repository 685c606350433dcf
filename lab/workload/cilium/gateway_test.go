package cilium

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/lab/workload"
)

const gatewayObjects = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cilium}
spec: {controllerName: io.cilium/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gateway, namespace: gateway}
spec:
  gatewayClassName: cilium
  addresses: [{type: IPAddress, value: 10.25.11.120}]
  listeners:
    - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}}
    - name: https
      port: 443
      protocol: HTTPS
      tls: {certificateRefs: [{name: gateway-tls}]}
      allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {gateway: public}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: web}
spec:
  parentRefs: [{name: gateway, namespace: gateway, sectionName: https}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`

// gatewayCluster is a cluster with the objects above and a leading operator that looks after them once per call of the returned function.
func gatewayCluster(t *testing.T, objects ...runtime.Object) (c simulation, look func()) {
	t.Helper()
	c = cluster()
	c.Client = kubefake.NewClientset(objects...)
	c.Dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		gatewayClasses: "GatewayClassList", gatewaysResource: "GatewayList", httpRoutesResource: "HTTPRouteList"})
	for i, text := range strings.Split(gatewayObjects, "---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		of := []schema.GroupVersionResource{gatewayClasses, gatewaysResource, httpRoutesResource}[i]
		_, err := c.Dynamic.Resource(of).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	o := &operator{Container: workload.Container{Cluster: c.Cluster, Log: io.Discard}, shared: &Cilium{}}
	return c, func() {
		list := func(of schema.GroupVersionResource) (items []*unstructured.Unstructured) {
			all, err := c.Dynamic.Resource(of).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for i := range all.Items {
				items = append(items, &all.Items[i])
			}
			return items
		}
		require.NoError(t, o.reconcileGateways(context.Background(), list(gatewaysResource), list(httpRoutesResource)))
	}
}

// read reads an object of the cluster.
func read[T any](t *testing.T, c simulation, of schema.GroupVersionResource, namespace, name string) (into T) {
	t.Helper()
	object, err := c.Dynamic.Resource(of).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, workload.Decode(object, &into))
	return into
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestGateway_IsProgrammedOnceItsServiceHasTheAddressAndItsListenersACertificate(t *testing.T) {
	c, look := gatewayCluster(t, namespaceOf("web", map[string]string{"gateway": "public"}),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "web"}})
	status := func() gatewayStatus { return read[gateway](t, c, gatewaysResource, "gateway", "gateway").Status }
	look()
	require.Equal(t, "Gateway waiting for address", meta.FindStatusCondition(status().Conditions, "Programmed").Message)
	require.Contains(t, meta.FindStatusCondition(status().Listeners[1].Conditions, "Accepted").Message, `"gateway-tls" not found`)

	services := c.Client.CoreV1().Services("gateway")
	service, err := services.Get(t.Context(), "cilium-gateway-gateway", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.ServiceTypeLoadBalancer, service.Spec.Type)
	require.Equal(t, "10.25.11.120", service.Annotations["io.cilium/lb-ipam-ips"])
	require.Len(t, service.Spec.Ports, 2)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.25.11.120"}}
	_, err = services.UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
	require.NoError(t, err)
	look()
	require.True(t, meta.IsStatusConditionTrue(status().Conditions, "Programmed"), "one valid listener is enough, as for Cilium")
	require.False(t, meta.IsStatusConditionTrue(status().Listeners[1].Conditions, "Programmed"))

	pem := []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")
	_, err = c.Client.CoreV1().Secrets("gateway").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "gateway-tls"},
		Data: map[string][]byte{"tls.crt": pem, "tls.key": pem}}, metav1.CreateOptions{})
	require.NoError(t, err)
	look()
	look()
	require.Equal(t, []gatewayAddress{{"IPAddress", "10.25.11.120"}}, status().Addresses)
	require.True(t, meta.IsStatusConditionTrue(status().Listeners[1].Conditions, "Programmed"))
	require.Equal(t, int32(1), status().Listeners[1].AttachedRoutes)

	age(t, c)
	before := len(c.Dynamic.(*fake.FakeDynamicClient).Actions())
	look()
	for _, action := range c.Dynamic.(*fake.FakeDynamicClient).Actions()[before:] {
		require.NotEqual(t, "patch", action.GetVerb(), "nothing changed, so nothing is written")
	}
}

// age sets all times in the conditions of the Gateway and the HTTPRoute back, so that a new one would differ.
func age(t *testing.T, c simulation) {
	t.Helper()
	var back func(any)
	back = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if _, is := value["lastTransitionTime"]; is {
				value["lastTransitionTime"] = "2026-01-01T00:00:00Z"
			}
			for _, inner := range value {
				back(inner)
			}
		case []any:
			for _, inner := range value {
				back(inner)
			}
		}
	}
	for of, namespace := range map[schema.GroupVersionResource]string{gatewaysResource: "gateway", httpRoutesResource: "web"} {
		list, err := c.Dynamic.Resource(of).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, list.Items)
		for _, object := range list.Items {
			back(object.Object["status"])
			_, err := c.Dynamic.Resource(of).Namespace(namespace).Update(t.Context(), &object, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
	}
}

func TestGateway_WithAnotherAddressThanDeclaredIsNotProgrammed(t *testing.T) {
	c, look := gatewayCluster(t, namespaceOf("web", nil))
	look()
	services := c.Client.CoreV1().Services("gateway")
	service, err := services.Get(t.Context(), "cilium-gateway-gateway", metav1.GetOptions{})
	require.NoError(t, err)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.25.11.121"}}
	_, err = services.UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
	require.NoError(t, err)
	look()
	got := read[gateway](t, c, gatewaysResource, "gateway", "gateway").Status
	require.Equal(t, "AddressNotUsable", meta.FindStatusCondition(got.Conditions, "Programmed").Reason)
}

func TestRoute_IsAcceptedFromNamespacesThatItsListenerAllows(t *testing.T) {
	for label, want := range map[string]string{"public": "Accepted", "private": "NotAllowedByListeners"} {
		c, look := gatewayCluster(t, namespaceOf("web", map[string]string{"gateway": label}))
		look()
		parents := read[httpRoute](t, c, httpRoutesResource, "web", "web").Status.Parents
		require.Len(t, parents, 1)
		require.Equal(t, want, meta.FindStatusCondition(parents[0].Conditions, "Accepted").Reason)
		require.Equal(t, "BackendNotFound", meta.FindStatusCondition(parents[0].Conditions, "ResolvedRefs").Reason)
	}
}
