package kubernetes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// denied are the flags to which Talos 1.12 and later lets nobody give a value, and since114 those that 1.14 adds (denyListArgs in etcd.go,
// MergeDenied in control_plane_static_pod.go or, since 1.14, control_plane_final.go). The kubelet's, in kubelet_spec.go, are left out.
var (
	denied = map[string][]string{
		"etcd": {
			"auto-tls", "cert-file", "client-cert-auth", "data-dir", "key-file", "listen-client-urls", "listen-peer-urls", "name",
			"peer-auto-tls", "peer-cert-file", "peer-client-cert-auth", "peer-key-file", "peer-trusted-ca-file", "trusted-ca-file",
		},
		k8s.APIServerID: {
			"authorization-config", "client-ca-file", "encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers",
			"kubelet-client-certificate", "kubelet-client-key", "proxy-client-cert-file", "proxy-client-key-file",
			"requestheader-client-ca-file", "service-account-key-file", "service-account-signing-key-file", "tls-cert-file",
			"tls-private-key-file",
		},
		k8s.ControllerManagerID: {
			"authentication-kubeconfig", "authorization-kubeconfig", "cluster-signing-cert-file", "cluster-signing-key-file", "root-ca-file",
			"service-account-private-key-file",
		},
		k8s.SchedulerID: {"authentication-kubeconfig", "authorization-kubeconfig", "config", "kubeconfig"},
	}
	before114 = map[string][]string{"etcd": {
		"experimental-compact-hash-check-enabled", "experimental-initial-corrupt-check", "experimental-watch-progress-notify-interval",
	}}
	since114 = map[string][]string{
		"etcd":          {"feature-gates", "listen-client-http-urls", "tls-min-version", "watch-progress-notify-interval"},
		k8s.APIServerID: {"tls-min-version"},
	}
)

// Denied is the error of a version of Talos that makes no command line of a component from these arguments; nil if it makes one.
func Denied(version, component string, args map[string][]string) error {
	of := before114
	if versions.Since(version, "v1.14") {
		of = since114
	}
	for _, flag := range slices.Sorted(maps.Keys(args)) {
		if slices.Contains(denied[component], flag) || slices.Contains(of[component], flag) {
			return fmt.Errorf("extra arg %q is not allowed", flag)
		}
	}
	return nil
}

// Denied is why a version of Talos makes no static pod of the component.
func (c Component) Denied(version string) error { return Denied(version, c.Name, c.args) }
