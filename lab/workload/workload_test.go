package workload

import (
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/fault"
)

func node(name, ip, cidr string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	n.Spec.PodCIDR = cidr
	return n
}

func cluster() *Cluster {
	nodes := []*corev1.Node{node("worker-1", "10.25.11.21", "10.244.1.0/24"), node("cp-1", "10.25.11.11", "10.244.0.0/24")}
	return &Cluster{Name: "infra", Client: fake.NewClientset(config("cluster-name", "infra")), Faults: &fault.Set{},
		PodStart: time.Millisecond, Cilium: &Cilium{}, Nodes: func() []*corev1.Node { return nodes }, Log: slog.New(slog.DiscardHandler)}
}

const namespace = "flux-system"

// config is the chart's ConfigMap; the pairs are keys and values.
func config(pairs ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ciliumConfigMap, Namespace: namespace}, Data: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		m.Data[pairs[i]] = pairs[i+1]
	}
	return m
}

func container(c *Cluster, node, name, image string) Container {
	return Container{Cluster: c, Node: node, NodeIP: netip.MustParseAddr("10.25.11.11"), PodIP: netip.MustParseAddr("10.244.0.10"),
		Log: io.Discard, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace, Labels: map[string]string{"app": "x"}}},
		Spec: corev1.Container{Name: name, Image: image}}
}

func agentOn(t *testing.T, c *Cluster, node string) *Instance {
	agent := container(c, node, "cilium-agent", "quay.io/cilium/cilium:v1.18.7")
	i, err := (Registry{}).Find(agent)(t.Context(), agent)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, 5*time.Second, time.Millisecond)
	return i
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

func TestCilium_HealthNamesThePeerWhoseAgentIsGone(t *testing.T) {
	c := cluster()
	a, b := agentOn(t, c, "cp-1"), agentOn(t, c, "worker-1")
	health := func(healthy bool) (h healthStatus) {
		require.Eventually(t, func() bool {
			h = healthStatus{}
			ask(t, a, &h, "cilium-health status -o json")
			if len(h.Nodes) < 2 {
				return false
			}
			peer := append(h.Nodes[1].Host.all(), h.Nodes[1].HealthEndpoint.all()...)
			all, done := probed(h)
			return all == done && !slices.ContainsFunc(peer, func(p *pathStatus) bool { return p.reachable() != healthy })
		}, 5*time.Second, time.Millisecond)
		return h
	}
	h := health(true)
	require.Equal(t, "infra/cp-1", h.Local.Name)
	require.Len(t, h.Nodes, 2)
	for _, n := range h.Nodes {
		require.Empty(t, n.Host.PrimaryAddress.HTTP.Status)
		require.Empty(t, n.HealthEndpoint.PrimaryAddress.ICMP.Status)
		require.NotZero(t, n.Host.PrimaryAddress.ICMP.Latency)
	}
	b.Exit(1)
	require.Eventually(t, func() bool { return !c.Cilium.Ready("worker-1") }, 5*time.Second, time.Millisecond)
	peer := health(false).Nodes[1]
	require.Equal(t, "infra/worker-1", peer.Name)
	require.Equal(t, "10.25.11.21", peer.Host.PrimaryAddress.IP)
	require.Contains(t, peer.Host.PrimaryAddress.HTTP.Status, "connection refused")
	require.NotEmpty(t, peer.HealthEndpoint.PrimaryAddress.ICMP.Status)
	require.Empty(t, peer.Host.PrimaryAddress.ICMP.Status, "the host still answers")

	var out bytes.Buffer
	_, err := a.Exec(t.Context(), []string{"cilium-dbg", "status", "--brief"}, nil, &out, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "OK\n", out.String())
}

func TestCilium_AnAgentCrashesUnderItsFaultAndOnlyThere(t *testing.T) {
	c := cluster()
	a, b := agentOn(t, c, "cp-1"), agentOn(t, c, "worker-1")
	require.NoError(t, c.Faults.On(fault.Fault{Kind: fault.CiliumAgentCrash, Target: "worker-1"}))
	select {
	case <-b.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the agent lives on")
	}
	require.Equal(t, 1, b.ExitCode())
	require.True(t, a.Ready())
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
	env, err := environment(t.Context(), c.Cluster.Client, c)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"RUNTIME_NAMESPACE": "flux-system", "GOMEMLIMIT": "1073741824", "APP": "x",
		"URL": "http://x.flux-system.svc $(UNKNOWN) $(APP)"}, env)

	c.Spec.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}, Key: "k"}}}}
	_, err = environment(t.Context(), c.Cluster.Client, c)
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
