package cilium

import (
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
)

// simulation is a cluster with its network.
type simulation struct {
	*workload.Cluster
	Cilium *Cilium
}

func node(name, ip, cidr string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	n.Spec.PodCIDR = cidr
	return n
}

func cluster() simulation {
	nodes := []*corev1.Node{node("worker-1", "10.25.11.21", "10.244.1.0/24"), node("cp-1", "10.25.11.11", "10.244.0.0/24")}
	return simulation{&workload.Cluster{Name: "infra", Client: fake.NewClientset(config("cluster-name", "infra")), Faults: &fault.Set{},
		PodStart: time.Millisecond, Nodes: func() []*corev1.Node { return nodes }, Log: slog.New(slog.DiscardHandler)}, &Cilium{}}
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

func container(c simulation, node, name, image string) workload.Container {
	return workload.Container{Cluster: c.Cluster, Node: node, NodeIP: netip.MustParseAddr("10.25.11.11"), PodIP: netip.MustParseAddr("10.244.0.10"),
		Log: io.Discard, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace, Labels: map[string]string{"app": "x"}}},
		Spec: corev1.Container{Name: name, Image: image}}
}

func agentOn(t *testing.T, c simulation, node string) *workload.Instance {
	agent := container(c, node, "cilium-agent", "quay.io/cilium/cilium:v1.18.7")
	i, err := c.Cilium.Find(agent)(t.Context(), agent)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	return i
}

// record is a container's log that can be read while it is written.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) has(words string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.b.String(), words)
}
