package services

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/workload"
)

// sealingKeys selects the Secrets with the keys of sealed-secrets.
const sealingKeys = "sealedsecrets.bitnami.com/sealed-secrets-key=active"

// SealedSecrets runs the real controller of sealed-secrets, which takes its configuration from its container only. env is
// added to its environment.
func SealedSecrets(path string, env []string) workload.Behaviour {
	p := workload.Program{Path: path, InCluster: true, Args: func(c workload.Container) []string {
		at := func(port uint16) string { return netip.AddrPortFrom(c.PodIP, port).String() }
		return []string{"--listen-addr=" + at(8080), "--listen-metrics-addr=" + at(8081)}
	}}
	return func(ctx context.Context, c workload.Container) (*workload.Instance, error) {
		if !sealingKeyLate(c) {
			return p.Start(ctx, "sealed-secrets-controller", env, c)
		}
		keys, err := takeKeys(ctx, c)
		if err != nil {
			return nil, err
		}
		i, err := p.Start(ctx, "sealed-secrets-controller", env, c)
		if err != nil {
			returnKeys(c, keys)
			return nil, err
		}
		go func() {
			awaitOwnKey(ctx, c, i)
			returnKeys(c, keys)
		}()
		return i, nil
	}
}

// takeKeys deletes the keys in the controller's namespace and returns them.
func takeKeys(ctx context.Context, c workload.Container) ([]corev1.Secret, error) {
	secrets := c.Cluster.Client.CoreV1().Secrets(c.Pod.Namespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: sealingKeys})
	if err != nil {
		return nil, err
	}
	for n, s := range list.Items {
		if err := secrets.Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil {
			returnKeys(c, list.Items[:n])
			return nil, err
		}
	}
	return list.Items, nil
}

// returnKeys creates deleted keys again, also when the node ends meanwhile.
func returnKeys(c workload.Container, keys []corev1.Secret) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, s := range keys {
		s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: s.Labels, Annotations: s.Annotations,
			OwnerReferences: s.OwnerReferences}
		if _, err := c.Cluster.Client.CoreV1().Secrets(s.Namespace).Create(ctx, &s, metav1.CreateOptions{}); err != nil {
			c.Cluster.Log.Warn("sealing key not created again", "secret", s.Name, "err", err)
		}
	}
}

// awaitOwnKey returns when the controller has made a key, when it has ended, or when the fault is over.
func awaitOwnKey(ctx context.Context, c workload.Container, i *workload.Instance) {
	tick := time.NewTicker(workload.CheckInterval)
	defer tick.Stop()
	for {
		changed := c.Cluster.Faults.Changed()
		list, err := c.Cluster.Client.CoreV1().Secrets(c.Pod.Namespace).List(ctx, metav1.ListOptions{LabelSelector: sealingKeys})
		if err == nil && slices.ContainsFunc(list.Items, func(s corev1.Secret) bool { return s.GenerateName != "" }) || !sealingKeyLate(c) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-i.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}
