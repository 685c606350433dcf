package chart

import (
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// RemovedValue is a value that the chart no longer has. A chart ignores what it does not know, or fails.
type RemovedValue struct {
	Path    string
	Since   int    // minor release of Cilium 1, such as 18
	Instead string // remedy
}

const (
	alwaysOn   = "remove it: the feature is always on"
	noMore     = "remove it: Cilium has the feature no more"
	ofNoEffect = "remove it: it has no successor"
)

// RemovedValues are those of the upgrade notes of 1.17, 1.18 and 1.19 (Documentation/operations/upgrade.rst) that a stack may set, as the
// templates of the charts confirm, which a test reads. Slipway replaces kube-proxy, which includes node ports, host ports and external
// addresses.
var RemovedValues = []RemovedValue{
	{"bgp", 17, "remove it, and set network.loadBalancers.announce: bgp"},
	{"encryption.wireguard.userspaceFallback", 17, noMore},
	{"externalIPs", 17, alwaysOn},

	{"ciliumEndpointSlice.sliceMode", 18, ofNoEffect},
	{"enableCiliumEndpointSlice", 18, "write ciliumEndpointSlice.enabled"},
	{"enableK8sTerminatingEndpoint", 18, alwaysOn},
	{"enableRuntimeDeviceDetection", 18, alwaysOn},
	{"externalWorkloads", 18, noMore},
	{"highScaleIPcache", 18, noMore},
	{"hostPort", 18, alwaysOn},
	{"hubble.relay.dialTimeout", 18, ofNoEffect},
	{"l2NeighDiscovery.refreshPeriod", 18, "remove it, and set the sysctl base_reachable_time_ms in talos.sysctls"},

	{"customCalls", 19, noMore},
	{"enableInternalTrafficPolicy", 19, alwaysOn},
	{"nodePort.enabled", 19, alwaysOn},
	{"sessionAffinity", 19, alwaysOn},
	{"svcSourceRangeCheck", 19, alwaysOn},
}

// checkRemoved adds a problem for each of the user's values that the chart's release no longer has, and removes it from the tree.
func checkRemoved(findings *cluster.Findings, path, version string, given map[string]any) {
	release, err := strconv.Atoi(strings.TrimPrefix(minorOf(version), "1."))
	if err != nil {
		return // the version is no version, or of another major release
	}
	for _, value := range RemovedValues {
		if release < value.Since || !has(given, value.Path) {
			continue
		}
		findings.Found(cluster.KeyPath(path, value.Path), value.Instead, "is no value of Cilium's chart since 1.%d", value.Since)
		without(given, value.Path)
	}
}

// without removes a value from a tree, which has it.
func without(tree map[string]any, path string) {
	key, below, nested := strings.Cut(path, ".")
	if inner, isMap := tree[key].(map[string]any); nested && isMap {
		without(inner, below)
		return
	}
	delete(tree, key)
}
