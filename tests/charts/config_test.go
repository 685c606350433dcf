package charts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// configOf is what the agents and the operator read.
func configOf(t *testing.T, v variant) map[string]any {
	t.Helper()
	data, _ := one(t, v.rendered(t), "ConfigMap", "cilium-config")["data"].(map[string]any)
	require.Greater(t, len(data), 100)
	return data
}

func TestConfig_DefaultSaysWhatTalosNeeds(t *testing.T) {
	config := configOf(t, called(t, "default"))
	for key, want := range map[string]any{
		"cluster-name":                  "infra",
		"cluster-id":                    "1",
		"ipam":                          "kubernetes",
		"kube-proxy-replacement":        "true",
		"cgroup-root":                   "/sys/fs/cgroup",
		"routing-mode":                  "tunnel",
		"tunnel-protocol":               "vxlan",
		"ipv4-native-routing-cidr":      "10.244.0.0/16",
		"enable-ipv4":                   "true",
		"enable-ipv6":                   "false",
		"enable-ipv4-masquerade":        "true",
		"enable-bpf-masquerade":         "false",
		"bpf-lb-sock-hostns-only":       "false",
		"enable-hubble":                 "true",
		"hubble-disable-tls":            "false",
		"external-envoy-proxy":          "true",
		"envoy-keep-cap-netbindservice": "false",

		"connectivity-probe-frequency-ratio": "0",
		"enable-l2-announcements":            "true",
		"k8s-client-qps":                     "20",
		"k8s-client-burst":                   "40",
		"policy-default-local-cluster":       "true",
	} {
		assert.Equal(t, want, config[key], key)
	}
}

func TestConfig_AnOptionChangesWhatItIsForAndNothingElse(t *testing.T) {
	gone := any(nil) // a key that the default has and the variant has not
	for name, want := range map[string]map[string]any{
		"dual-stack": {
			"enable-ipv6": "true", "enable-ipv6-masquerade": "true", "ipv6-native-routing-cidr": "fd00:10:244::/56",
		},
		"native": {"routing-mode": "native", "auto-direct-node-routes": "true"},
		"bpf":    {"enable-bpf-masquerade": "true"},
		"gateway": {
			"enable-gateway-api":                        "true",
			"enable-gateway-api-alpn":                   "true",
			"enable-gateway-api-app-protocol":           "true",
			"enable-gateway-api-proxy-protocol":         "false",
			"enable-gateway-api-secrets-sync":           "true",
			"gateway-api-hostnetwork-enabled":           "false",
			"gateway-api-hostnetwork-nodelabelselector": "",
			"gateway-api-secrets-namespace":             "cilium-secrets",
			"gateway-api-service-externaltrafficpolicy": "Cluster",
			"gateway-api-use-remote-address":            "true",
			"gateway-api-xff-num-trusted-hops":          "0",
			"bpf-lb-algorithm-annotation":               "true", // these two for the weights of TCPRoutes and UDPRoutes
			"bpf-lb-sock-hostns-only":                   "true",
			"enable-envoy-config":                       "true",
			"envoy-config-retry-interval":               "15s",
		},
		"no-hubble": {
			"enable-hubble": "false", "hubble-disable-tls": gone, "hubble-listen-address": gone, "hubble-socket-path": gone,
			"hubble-tls-cert-file": gone, "hubble-tls-client-ca-files": gone, "hubble-tls-key-file": gone,
			"hubble-network-policy-correlation-enabled": gone,
		},
		"no-relay":  {},
		"hubble-ui": {},
		"bgp": {
			"enable-bgp-control-plane": "true", "enable-bgp-control-plane-status-report": "true",
			"enable-bgp-legacy-origin-attribute": "false", "bgp-router-id-allocation-ip-pool": "",
			"bgp-router-id-allocation-mode": "default", "bgp-secrets-namespace": "kube-system",
			"enable-l2-announcements": gone, "k8s-client-qps": gone, "k8s-client-burst": gone,
		},
		"no-announcements": {"enable-l2-announcements": gone, "k8s-client-qps": gone, "k8s-client-burst": gone},
		"wireguard":        {"enable-wireguard": "true", "wireguard-persistent-keepalive": "0s"},
		"edt":              {"enable-bandwidth-manager": "true", "enable-bbr": "false", "enable-bbr-hostns-only": "false"},
		"mesh":             {},
	} {
		default_, config := configOf(t, called(t, "default")), configOf(t, called(t, name))
		got := map[string]any{}
		for key, value := range config {
			if default_[key] != value {
				got[key] = value
			}
		}
		for key := range default_ {
			if _, there := config[key]; !there {
				got[key] = gone
			}
		}
		assert.Equal(t, want, got, name)
	}
}

func TestConfig_AllOptionsGoTogether(t *testing.T) {
	config := configOf(t, called(t, "everything"))
	for _, key := range []string{
		"enable-ipv6", "enable-bpf-masquerade", "enable-bandwidth-manager", "enable-bbr", "enable-gateway-api",
		"enable-l2-announcements", "enable-wireguard", "enable-hubble",
	} {
		assert.Equal(t, "true", config[key], key)
	}
}
