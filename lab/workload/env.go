package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Environment resolves a container's environment: values, the downward API, Secrets and ConfigMaps.
func Environment(ctx context.Context, c Container) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range c.Spec.EnvFrom {
		data, err := source(ctx, c.Cluster.Client, c.Pod.Namespace, from)
		if err != nil {
			return nil, err
		}
		for k, v := range data {
			env[from.Prefix+k] = v
		}
	}
	for _, e := range c.Spec.Env {
		if e.ValueFrom == nil {
			env[e.Name] = Expand(e.Value, env)
			continue
		}
		v, found, err := valueFrom(ctx, c, e.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", e.Name, err)
		}
		if found {
			env[e.Name] = v
		}
	}
	return env, nil
}

func source(ctx context.Context, client kubernetes.Interface, namespace string, from corev1.EnvFromSource) (map[string]string, error) {
	out := map[string]string{}
	switch {
	case from.SecretRef != nil:
		s, err := client.CoreV1().Secrets(namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, optional(err, from.SecretRef.Optional)
		}
		for k, v := range s.Data {
			out[k] = string(v)
		}
	case from.ConfigMapRef != nil:
		m, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, from.ConfigMapRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, optional(err, from.ConfigMapRef.Optional)
		}
		return m.Data, nil
	}
	return out, nil
}

func valueFrom(ctx context.Context, c Container, from *corev1.EnvVarSource) (string, bool, error) {
	client := c.Cluster.Client
	switch {
	case from.FieldRef != nil:
		return field(c, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return resourceField(c.Spec, from.ResourceFieldRef.Resource)
	case from.SecretKeyRef != nil:
		s, err := client.CoreV1().Secrets(c.Pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", false, optional(err, from.SecretKeyRef.Optional)
		}
		v, ok := s.Data[from.SecretKeyRef.Key]
		return string(v), ok, nil
	case from.ConfigMapKeyRef != nil:
		m, err := client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, from.ConfigMapKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", false, optional(err, from.ConfigMapKeyRef.Optional)
		}
		v, ok := m.Data[from.ConfigMapKeyRef.Key]
		return v, ok, nil
	}
	return "", false, nil
}

// optional ignores the error of a missing object if its reference is optional.
func optional(err error, is *bool) error {
	if is != nil && *is && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func field(c Container, path string) (string, bool, error) {
	p := c.Pod
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return p.Labels[strings.TrimSuffix(key, "']")], true, nil
	}
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return p.Annotations[strings.TrimSuffix(key, "']")], true, nil
	}
	v, ok := map[string]string{
		"metadata.name": p.Name, "metadata.namespace": p.Namespace, "metadata.uid": string(p.UID),
		"spec.nodeName": c.Node, "spec.serviceAccountName": p.Spec.ServiceAccountName,
		"status.hostIP": c.NodeIP.String(), "status.podIP": c.PodIP.String(), "status.hostIPs": c.NodeIP.String(), "status.podIPs": c.podIPs(),
	}[path]
	if !ok {
		return "", false, fmt.Errorf("fieldPath %q: unknown", path)
	}
	return v, true, nil
}

func resourceField(c corev1.Container, name string) (string, bool, error) {
	list, key, _ := strings.Cut(name, ".")
	resources := c.Resources.Limits
	if list == "requests" {
		resources = c.Resources.Requests
	}
	q, ok := resources[corev1.ResourceName(key)]
	if !ok {
		return "", false, nil
	}
	if key == "cpu" {
		return strconv.FormatInt((q.MilliValue()+999)/1000, 10), true, nil
	}
	return strconv.FormatInt(q.Value(), 10), true, nil
}

// Expand replaces $(NAME) by the variable's value and $$ by $. Unknown names stay, as in Kubernetes.
func Expand(s string, env map[string]string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '$')
		if at < 0 || at == len(s)-1 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		s = s[at+1:]
		end := strings.IndexByte(s, ')')
		value, known := "", false
		if s[0] == '(' && end > 0 {
			value, known = env[s[1:end]]
		}
		switch {
		case s[0] == '$':
			b.WriteByte('$')
			s = s[1:]
		case known:
			b.WriteString(value)
			s = s[end+1:]
		default:
			b.WriteByte('$')
		}
	}
}
