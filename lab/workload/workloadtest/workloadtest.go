// Package workloadtest has what tests of simulated workloads share.
package workloadtest

import (
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
)

// Namespace is that of the pods.
const Namespace = "flux-system"

// Cluster returns a cluster without nodes, whose API has the objects.
func Cluster(objects ...runtime.Object) *workload.Cluster {
	return &workload.Cluster{Name: "infra", Client: fake.NewClientset(objects...), Faults: &fault.Set{}, PodStart: time.Millisecond,
		Nodes: func() []*corev1.Node { return nil }, Log: slog.New(slog.DiscardHandler)}
}

// Container returns the one container of a pod on a node.
func Container(c *workload.Cluster, node, name, image string) workload.Container {
	return workload.Container{Cluster: c, Node: node, NodeIP: netip.MustParseAddr("10.25.11.11"), PodIP: netip.MustParseAddr("10.244.0.10"),
		Log: io.Discard, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: Namespace, Labels: map[string]string{"app": "x"}}},
		Spec: corev1.Container{Name: name, Image: image}}
}

// Log is a container's log that can be read while it is written. The zero Log is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what is written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
