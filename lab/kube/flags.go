package kube

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// flags is a component's command line, without the dashes.
type flags map[string]string

// args returns the flags as arguments, in a stable order.
func (f flags) args() []string {
	out := make([]string, 0, len(f))
	for _, k := range slices.Sorted(maps.Keys(f)) {
		out = append(out, "--"+k+"="+f[k])
	}
	return out
}

// oneEach returns extraArgs with one value each. Talos takes lists since 1.13, and the Talos plugin, with machinery 1.12, parses none.
func oneEach(extraArgs map[string][]string) map[string]string {
	extra := make(map[string]string, len(extraArgs))
	for flag, values := range extraArgs {
		extra[flag] = strings.Join(values, ",")
	}
	return extra
}

// additive are the flags that extraArgs extend instead of replacing, as in Talos.
var additive = []string{"enable-admission-plugins", "feature-gates", "controllers", "service-cluster-ip-range"}

// merge overwrites the flags with a component's extraArgs. It returns the refused flags: the lab sets addresses, files and endpoints
// itself, and files of a Talos node do not exist here.
func (f flags) merge(extra map[string]string) (refused []string) {
	for _, k := range slices.Sorted(maps.Keys(extra)) {
		old, had := f[k]
		switch {
		case had && slices.Contains(additive, k):
			f[k] = old + "," + extra[k]
		case owned(k):
			refused = append(refused, k)
		default:
			f[k] = extra[k]
		}
	}
	return refused
}

func owned(flag string) bool {
	switch flag {
	case "bind-address", "secure-port", "etcd-servers", "advertise-address", "leader-elect", "leader-elect-resource-name", "config",
		"kubeconfig", "audit-log-path", "endpoint-reconciler-type", "authentication-kubeconfig", "authorization-kubeconfig",
		"authorization-config", "authentication-config", "encryption-provider-config":
		return true
	}
	return strings.HasSuffix(flag, "-file") || strings.HasSuffix(flag, "-certificate") || strings.HasSuffix(flag, "-key") ||
		strings.HasSuffix(flag, "-cafile")
}

func etcdFlags(dir string, ip netip.Addr) flags {
	return flags{
		"dir":        dir,
		"client-url": "http://" + netip.AddrPortFrom(ip, 2379).String(),
		"peer-url":   "http://" + netip.AddrPortFrom(ip, 2380).String(),
	}
}

// apiServerFlags are those of Talos's static pod, without its audit log. etcd listens on another address than the API server.
func apiServerFlags(cfg config.ClusterConfig, pki string, etcd, ip, advertise netip.Addr) flags {
	f := flags{
		"admission-control-config-file":      pki + "/admission.yaml",
		"allow-privileged":                   "true",
		"anonymous-auth":                     "false",
		"api-audiences":                      cfg.Endpoint().String(),
		"authorization-config":               pki + "/authz.yaml",
		"bind-address":                       ip.String(),
		"client-ca-file":                     pki + "/accepted-ca.crt",
		"enable-admission-plugins":           "NodeRestriction",
		"enable-aggregator-routing":          "true", // not in Talos: webhooks are called at pod addresses, as Services do not route
		"enable-bootstrap-token-auth":        "true",
		"encryption-provider-config":         pki + "/encryption.yaml",
		"etcd-servers":                       "http://" + netip.AddrPortFrom(etcd, 2379).String(),
		"kubelet-client-certificate":         pki + "/apiserver-kubelet-client.crt",
		"kubelet-client-key":                 pki + "/apiserver-kubelet-client.key",
		"kubelet-preferred-address-types":    "InternalIP,ExternalIP,Hostname",
		"profiling":                          "false",
		"proxy-client-cert-file":             pki + "/front-proxy-client.crt",
		"proxy-client-key-file":              pki + "/front-proxy-client.key",
		"requestheader-allowed-names":        "front-proxy-client",
		"requestheader-client-ca-file":       pki + "/aggregator-ca.crt",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-username-headers":     "X-Remote-User",
		"secure-port":                        "6443",
		"service-account-issuer":             cfg.Endpoint().String(),
		"service-account-key-file":           pki + "/service-account.pub",
		"service-account-signing-key-file":   pki + "/service-account.key",
		"service-cluster-ip-range":           strings.Join(cfg.Network().ServiceCIDRs(), ","),
		"shutdown-delay-duration":            "0s",
		"tls-cert-file":                      pki + "/apiserver.crt",
		"tls-min-version":                    "VersionTLS12",
		"tls-private-key-file":               pki + "/apiserver.key",
	}
	// Endpoints must not contain a loopback address. Without a node's address there is nothing to advertise.
	if advertise.IsValid() && !advertise.IsLoopback() {
		f["advertise-address"] = advertise.String()
	} else {
		f["endpoint-reconciler-type"] = "none"
	}
	return f
}

func controllerManagerFlags(cfg config.ClusterConfig, pki string, ip netip.Addr) flags {
	kubeconfig := pki + "/controller-manager.kubeconfig"
	return flags{
		"allocate-node-cidrs":              "true",
		"authentication-kubeconfig":        kubeconfig,
		"authorization-kubeconfig":         kubeconfig,
		"bind-address":                     ip.String(),
		"cluster-cidr":                     strings.Join(cfg.Network().PodCIDRs(), ","),
		"cluster-signing-cert-file":        pki + "/ca.crt",
		"cluster-signing-key-file":         pki + "/ca.key",
		"configure-cloud-routes":           "false",
		"controllers":                      "*,tokencleaner",
		"kubeconfig":                       kubeconfig,
		"leader-elect":                     "false",
		"profiling":                        "false",
		"root-ca-file":                     pki + "/ca.crt",
		"service-account-private-key-file": pki + "/service-account.key",
		"service-cluster-ip-range":         strings.Join(cfg.Network().ServiceCIDRs(), ","),
		"tls-min-version":                  "VersionTLS13",
		"use-service-account-credentials":  "true",
	}
}

func schedulerFlags(pki string, ip netip.Addr) flags {
	return flags{
		"authentication-kubeconfig":              pki + "/scheduler.kubeconfig",
		"authentication-tolerate-lookup-failure": "false",
		"authorization-kubeconfig":               pki + "/scheduler.kubeconfig",
		"bind-address":                           ip.String(),
		"config":                                 pki + "/scheduler.yaml",
		"profiling":                              "false",
		"tls-min-version":                        "VersionTLS13",
	}
}
