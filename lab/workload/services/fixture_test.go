package services

import (
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
)

const namespace = "flux-system"

func cluster() *workload.Cluster {
	return &workload.Cluster{Name: "infra", Client: fake.NewClientset(), Faults: &fault.Set{}, PodStart: time.Millisecond,
		Nodes: func() []*corev1.Node { return nil }, Log: slog.New(slog.DiscardHandler)}
}

func container(c *workload.Cluster, node, name, image string) workload.Container {
	return workload.Container{Cluster: c, Node: node, NodeIP: netip.MustParseAddr("10.25.11.11"), PodIP: netip.MustParseAddr("10.244.0.10"),
		Log: io.Discard, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace, Labels: map[string]string{"app": "x"}}},
		Spec: corev1.Container{Name: name, Image: image}}
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
