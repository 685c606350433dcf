package workload

import (
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/fault"
)

func cluster() *Cluster {
	return &Cluster{Name: "infra", Client: fake.NewClientset(), Faults: &fault.Set{}, PodStart: time.Millisecond,
		Nodes: func() []*corev1.Node { return nil }, Log: slog.New(slog.DiscardHandler)}
}

const namespace = "flux-system"

func container(c *Cluster, node, name, image string) Container {
	return Container{Cluster: c, Node: node, NodeIP: netip.MustParseAddr("10.25.11.11"), PodIP: netip.MustParseAddr("10.244.0.10"),
		Log: io.Discard, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace, Labels: map[string]string{"app": "x"}}},
		Spec: corev1.Container{Name: name, Image: image}}
}

func TestRepository_IsTheNameWithoutRegistryTagAndDigest(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/fluxcd/source-controller:v1.9.5":               "fluxcd/source-controller",
		"fluxcd/source-controller:v1.9.5@sha256:abc":            "fluxcd/source-controller",
		"registry.home.arpa:5000/a/b":                           "a/b",
		"localhost/x":                                           "x",
		"busybox":                                               "busybox",
		"quay.io/cilium/operator-generic:v1.18.7@sha256:000111": "cilium/operator-generic",
	} {
		require.Equal(t, want, repository(image), image)
	}
}

func TestEnvironment_ResolvesTheDownwardAPIAndExpands(t *testing.T) {
	c := container(cluster(), "cp-1", "manager", "x")
	c.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	c.Spec.Env = []corev1.EnvVar{
		{Name: "RUNTIME_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
		{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
		{Name: "APP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}},
		{Name: "URL", Value: "http://x.$(RUNTIME_NAMESPACE).svc $(UNKNOWN) $$(APP)"},
	}
	env, err := Environment(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"RUNTIME_NAMESPACE": "flux-system", "GOMEMLIMIT": "1073741824", "APP": "x",
		"URL": "http://x.flux-system.svc $(UNKNOWN) $(APP)"}, env)

	c.Spec.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}, Key: "k"}}}}
	_, err = Environment(t.Context(), c)
	require.ErrorContains(t, err, "env X")
}

func TestProgram_ListensOnThePodsAddressAndAdvertisesItsService(t *testing.T) {
	c := container(cluster(), "cp-1", "manager", "ghcr.io/fluxcd/source-controller:v1.9.5")
	c.Dir = "/lab/pod"
	args := (Program{}).overrides("source-controller", c)
	require.Contains(t, args, "--storage-adv-addr=10.244.0.10:9090")
	c.Cluster.Loopback = netip.MustParseAddr("127.1.1.1")
	c.Spec.Args = []string{"--storage-adv-addr=source-controller-shard1.$(RUNTIME_NAMESPACE).svc.cluster.local."}
	other := c
	other.Spec.Args = []string{"--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local."}
	require.Regexp(t, `^127\.1\.1\.1:2\d{4}$`, advertised(c, ""), "it outlives the pod")
	require.NotEqual(t, advertised(c, ""), advertised(other, ""), "each Service has a port of its own")
	require.Contains(t, args, "--storage-path=/lab/pod/data")
	require.Contains(t, args, "--events-addr=")
	require.Contains(t, args, "--enable-leader-election=false")
	args = (Program{Data: "/data"}).overrides("flux-operator", c)
	require.Contains(t, args, "--storage-path=/data")
	require.Contains(t, args, "--web-server-port=0")
	require.NotContains(t, args, "--events-addr=", "it has no such flag")
}
