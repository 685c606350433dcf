package workload

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestServiceAddresses_AServiceKeepsItsOwn(t *testing.T) {
	a := &ServiceAddresses{Range: netip.MustParsePrefix("198.19.1.0/30")}
	changed := a.Changed()
	require.Equal(t, "198.19.1.1", a.Assign("argocd", "redis").String())
	<-changed
	require.Equal(t, "198.19.1.2", a.Assign("argocd", "server").String())
	require.Equal(t, "198.19.1.1", a.Assign("argocd", "redis").String())
	require.False(t, a.Assign("argocd", "one-more").IsValid(), "all addresses are taken")
	ip, is := a.Assigned("argocd", "server")
	require.True(t, is)
	require.Equal(t, "198.19.1.2", ip.String())
	_, is = a.Assigned("argocd", "one-more")
	require.False(t, is)
	require.False(t, (*ServiceAddresses)(nil).Assign("argocd", "redis").IsValid())
}

func TestServiceNames_GiveAddressesToServicesOfTheContainersNamespace(t *testing.T) {
	service := func(namespace, name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: corev1.ServiceSpec{ClusterIP: ip}}
	}
	c := container(cluster(), "cp-1", "main", "example.com/x")
	c.Cluster.Services = &ServiceAddresses{Range: netip.MustParsePrefix("198.19.1.0/24")}
	c.Cluster.Client = fake.NewClientset(service(namespace, "own", "10.96.0.5"), service("other", "foreign", "10.96.0.6"),
		service(namespace, "headless", corev1.ClusterIPNone))
	names, err := serviceNames(t.Context(), c, c.Cluster.Services)
	require.NoError(t, err)
	require.Contains(t, string(names), "198.19.1.1 own.flux-system.svc.cluster.local own.flux-system.svc own.flux-system own\n")
	require.Contains(t, string(names), NoBackend+" foreign.other.svc.cluster.local")
	require.Contains(t, string(names), NoBackend+" headless.flux-system")
	names, err = ServiceNames(t.Context(), c)
	require.NoError(t, err)
	require.False(t, strings.Contains(string(names), "198.19."), "other programs share the lab's network namespace")
}
