package cilium

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/workloadtest"
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
	c := workloadtest.Cluster(config("cluster-name", "infra"))
	c.Nodes = func() []*corev1.Node { return nodes }
	return simulation{c, &Cilium{}}
}

const namespace = workloadtest.Namespace

// config is the chart's ConfigMap; the pairs are keys and values.
func config(pairs ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ciliumConfigMap, Namespace: namespace}, Data: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		m.Data[pairs[i]] = pairs[i+1]
	}
	return m
}

func container(c simulation, node, name, image string) workload.Container {
	return workloadtest.Container(c.Cluster, node, name, image)
}

func agentOn(t *testing.T, c simulation, node string) *workload.Instance {
	agent := container(c, node, "cilium-agent", "quay.io/cilium/cilium:v1.18.7")
	i, err := c.Cilium.Find(agent)(t.Context(), agent)
	require.NoError(t, err)
	require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
	return i
}
