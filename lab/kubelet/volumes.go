package kubelet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// missingVolume names the Secret or ConfigMap that keeps the pod from starting; empty if there is none.
func (w *podWorker) missingVolume(ctx context.Context, pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil:
			if m := w.missing(ctx, pod, v.Name, "secret", v.Secret.SecretName, v.Secret.Optional, v.Secret.Items); m != "" {
				return m
			}
		case v.ConfigMap != nil:
			if m := w.missing(ctx, pod, v.Name, "configmap", v.ConfigMap.Name, v.ConfigMap.Optional, v.ConfigMap.Items); m != "" {
				return m
			}
		case v.Projected != nil:
			for _, p := range v.Projected.Sources {
				m := ""
				if p.Secret != nil {
					m = w.missing(ctx, pod, v.Name, "secret", p.Secret.Name, p.Secret.Optional, p.Secret.Items)
				} else if p.ConfigMap != nil {
					m = w.missing(ctx, pod, v.Name, "configmap", p.ConfigMap.Name, p.ConfigMap.Optional, p.ConfigMap.Items)
				}
				if m != "" {
					return m
				}
			}
		}
	}
	return ""
}

func (w *podWorker) missing(ctx context.Context, pod *corev1.Pod, volume, kind, name string, optional *bool, items []corev1.KeyToPath) string {
	if optional != nil && *optional {
		return ""
	}
	keys, err := w.k.c.found.keys(ctx, w.k.c.client, kind, pod.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s %q not found", volume, kind, name)
	case err != nil:
		return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", volume, err)
	}
	for _, item := range items {
		if !slices.Contains(keys, item.Key) {
			return fmt.Sprintf("MountVolume.SetUp failed for volume %q : references non-existent %s key: %s", volume,
				map[string]string{"secret": "secret", "configmap": "config"}[kind], item.Key)
		}
	}
	return ""
}

// lookups are the keys of Secrets and ConfigMaps. They are read at most once in a while for all pods of a cluster,
// because a DaemonSet whose Secret is missing waits on every node.
type lookups struct {
	mu   sync.Mutex
	last map[string]lookup
}

type lookup struct {
	at   time.Time
	keys []string
	err  error
}

// keys are the keys of a Secret or ConfigMap, at most a moment old.
func (l *lookups) keys(ctx context.Context, client kubernetes.Interface, kind, namespace, name string) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := kind + "/" + namespace + "/" + name
	if have, ok := l.last[id]; ok && time.Since(have.at) < retry {
		return have.keys, have.err
	}
	found := lookup{}
	if kind == "secret" {
		var s *corev1.Secret
		if s, found.err = client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{}); found.err == nil {
			found.keys = append(slices.Collect(maps.Keys(s.Data)), slices.Collect(maps.Keys(s.StringData))...)
		}
	} else {
		var m *corev1.ConfigMap
		if m, found.err = client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}); found.err == nil {
			found.keys = append(slices.Collect(maps.Keys(m.Data)), slices.Collect(maps.Keys(m.BinaryData))...)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // this kubelet has ended, which says nothing about the object
	}
	found.at = time.Now()
	if l.last == nil {
		l.last = map[string]lookup{}
	}
	l.last[id] = found
	return found.keys, found.err
}
