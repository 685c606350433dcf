//go:build tools

// Package kubelet pins the kubelet of the lab's own Kubernetes, which only the real Talos runs. It has a module of its own, so that kube is
// not built again for it.
package kubelet

import _ "k8s.io/kubernetes/cmd/kubelet"
