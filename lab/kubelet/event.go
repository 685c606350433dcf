package kubelet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// warn writes a warning event about the pod, once per text.
func (w *podWorker) warn(ctx context.Context, pod *corev1.Pod, reason, message string) {
	w.event(ctx, pod, corev1.EventTypeWarning, reason, message)
}

// event writes an event about the pod, once per text. A real kubelet counts repetitions.
func (w *podWorker) event(ctx context.Context, pod *corev1.Pod, kind, reason, message string) {
	if w.written[reason+message] {
		return
	}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	if w.k.record(ctx, about, kind, reason, message) == nil {
		w.written[reason+message] = true
	}
}

func (k *Kubelet) record(ctx context.Context, about corev1.ObjectReference, kind, reason, message string) error {
	namespace, now := cmp.Or(about.Namespace, metav1.NamespaceDefault), metav1.NewTime(time.Now()) // the latter for events of nodes
	_, err := k.c.client.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano()), Namespace: namespace}, InvolvedObject: about,
		Reason: reason, Message: message, Type: kind, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: k.o.Name}, ReportingController: "kubelet", ReportingInstance: k.o.Name,
	}, metav1.CreateOptions{})
	return err
}

// logLine writes a line to the kubelet's own log, in the JSON form that Talos configures. The pairs are keys and
// values.
func (k *Kubelet) logLine(message string, pairs ...string) { k.o.logLine(message, pairs...) }

func (o NodeOptions) logLine(message string, pairs ...string) {
	if o.Log == nil {
		return
	}
	line := map[string]any{"ts": float64(time.Now().UnixMicro()) / 1000, "msg": message, "v": 0}
	for i := 0; i+1 < len(pairs); i += 2 {
		line[pairs[i]] = pairs[i+1]
	}
	if raw, err := json.Marshal(line); err == nil {
		o.Log(string(raw))
	}
}
