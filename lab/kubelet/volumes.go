package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// missingVolume says which Secret or ConfigMap keeps the pod from starting; "" if none does.
func (w *podWorker) missingVolume(ctx context.Context, pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil:
			if m := w.missing(ctx, pod, v.Name, "secret", v.Secret.SecretName, v.Secret.Optional); m != "" {
				return m
			}
		case v.ConfigMap != nil:
			if m := w.missing(ctx, pod, v.Name, "configmap", v.ConfigMap.Name, v.ConfigMap.Optional); m != "" {
				return m
			}
		case v.Projected != nil:
			for _, p := range v.Projected.Sources {
				m := ""
				if p.Secret != nil {
					m = w.missing(ctx, pod, v.Name, "secret", p.Secret.Name, p.Secret.Optional)
				} else if p.ConfigMap != nil {
					m = w.missing(ctx, pod, v.Name, "configmap", p.ConfigMap.Name, p.ConfigMap.Optional)
				}
				if m != "" {
					return m
				}
			}
		}
	}
	return ""
}

func (w *podWorker) missing(ctx context.Context, pod *corev1.Pod, volume, kind, name string, optional *bool) string {
	if optional != nil && *optional {
		return ""
	}
	var err error
	if kind == "secret" {
		_, err = w.k.c.client.CoreV1().Secrets(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	} else {
		_, err = w.k.c.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s %q not found", volume, kind, name)
	}
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", volume, err)
}

// warn writes an event about the pod, once per text.
func (w *podWorker) warn(ctx context.Context, pod *corev1.Pod, reason, message string) {
	if w.warned[reason+message] {
		return
	}
	now := metav1.NewTime(time.Now())
	_, err := w.k.c.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         reason, Message: message, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: w.k.o.Name}, ReportingController: "kubelet", ReportingInstance: w.k.o.Name,
	}, metav1.CreateOptions{})
	if err == nil {
		w.warned[reason+message] = true
	}
}
