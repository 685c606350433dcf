package kubelet

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/workload"
)

// The API server runs with Talos's admission plugins, so its own NodeRestriction refuses.
func TestMetadata_NodeRestrictionRefusesTaintsOfAWorkerAndLabelsWithThem(t *testing.T) {
	r := startPlane(t, nil, workload.Registry{})
	ip := kubetest.Loopback()
	var mu sync.Mutex
	said := map[string][]string{}
	start := func(o NodeOptions) *Kubelet {
		ip = ip.Next()
		o.Addresses, o.BootID, o.TalosVersion, o.KubernetesVersion = []netip.Addr{ip}, "1", "v1.12.7", kubetest.Version
		o.TalosLog = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			said[o.Name] = append(said[o.Name], line)
		}
		k, err := r.Start(t.Context(), o)
		require.NoError(t, err)
		return k
	}
	node := func(name string) *corev1.Node {
		n, err := r.api.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return &corev1.Node{}
		}
		return n
	}
	has := func(name string, want corev1.Taint) bool {
		return slices.ContainsFunc(node(name).Spec.Taints, func(t corev1.Taint) bool { return t == want })
	}
	refusal := func(name, words string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(said[name], func(line string) bool { return strings.Contains(line, words) })
		}
	}
	labels := map[string]string{"example.com/rack": "7", "topology.kubernetes.io/zone": "pve1"}
	storage := corev1.Taint{Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectNoSchedule}
	labelled := func(name string) func() bool {
		return func() bool { return node(name).Labels["example.com/rack"] == "7" }
	}

	start(NodeOptions{Name: "refused", Labels: labels, Taints: []corev1.Taint{storage}})
	start(NodeOptions{Name: "reserved", Labels: map[string]string{"example.com/rack": "7", "node-role.kubernetes.io/storage": ""}})
	start(NodeOptions{Name: "control", ControlPlane: true, Labels: labels, Taints: []corev1.Taint{storage}})
	k := start(NodeOptions{Name: "registered", Labels: labels, RegisterTaints: []corev1.Taint{storage}})

	r.eventually(t, "a control plane's Talos is an administrator", func() bool { return has("control", storage) && labelled("control")() })
	r.eventually(t, "a worker registers with its taints", func() bool { return has("registered", storage) && labelled("registered")() })
	r.eventually(t, "taints are refused", refusal("refused", `node \"refused\" is not allowed to modify taints`))
	r.eventually(t, "a reserved label is refused",
		refusal("reserved", "is not allowed to modify labels: node-role.kubernetes.io/storage"))
	require.Never(t, func() bool {
		_, refused := node("refused").Labels["example.com/rack"]
		_, reserved := node("reserved").Labels["example.com/rack"]
		return refused || reserved || has("refused", storage)
	}, 3*metadataRetry, metadataRetry/2, "what was refused is tried again, and stays refused")

	// A kubelet that starts again changes no taint, and a label of somebody else stays.
	k.Kill()
	n := node("registered")
	n.Labels["example.com/mine"] = "x"
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "dedicated" })
	_, err := r.api.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	start(NodeOptions{Name: "registered", Labels: map[string]string{"example.com/mine": "y", "example.com/new": "1"}, RegisterTaints: []corev1.Taint{storage}})
	r.eventually(t, "labels follow the configuration", func() bool {
		have := node("registered").Labels
		return have["example.com/new"] == "1" && have["example.com/rack"] == "" && have["example.com/mine"] == "x"
	})
	require.False(t, has("registered", storage))
}
