package chart

import (
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/releases"
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

	ownCertificates = "remove it: Slipway makes the certificates and their Secrets"
)

// RemovedValues are those of the upgrade notes of 1.17 to 1.20 (Documentation/operations/upgrade.rst) that a stack may set, as the
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

	{"clustermesh.apiserver.tls.admin", 20, ownCertificates},
	{"clustermesh.apiserver.tls.enableSecrets", 20, ownCertificates},
	{"clustermesh.apiserver.tls.remote", 20, ownCertificates},
	{"clustermesh.apiserver.tls.server", 20, ownCertificates},
	{"clustermesh.enableMCSAPISupport", 20, "write clustermesh.mcsapi.enabled"},
	{"encryption.ipsec.encryptedOverlay", 20, ofNoEffect},
	{"encryption.ipsec.interface", 20, ofNoEffect},
	{"encryption.strictMode.allowRemoteNodeIdentities", 20, "write encryption.strictMode.egress.allowRemoteNodeIdentities"},
	{"encryption.strictMode.cidr", 20, "write encryption.strictMode.egress.cidr"},
	{"encryption.strictMode.enabled", 20, "write encryption.strictMode.egress.enabled"},
	{"hubble.redact.kafka", 20, noMore},
	{"hubble.ui.backend.livenessProbe.enabled", 20, ofNoEffect},
	{"hubble.ui.backend.readinessProbe.enabled", 20, ofNoEffect},
	{"preflight.tofqdnsPreCache", 20, ofNoEffect},
}

// minorRelease returns the minor release of a version of Cilium 1; false for a text that is no version, or of another major release.
func minorRelease(version string) (int, bool) {
	release, err := strconv.Atoi(strings.TrimPrefix(releases.MinorOf(version), "1."))
	return release, err == nil
}

// isFrom reports whether the declared version is of that minor release of Cilium 1, or of a later one.
func (v Values) isFrom(release int) bool {
	declared, is := minorRelease(v.Cilium.Version)
	return is && declared >= release
}

// checkRemoved adds a problem for each of the user's values that the chart's release no longer has, and removes it from the tree.
func checkRemoved(findings *cluster.Findings, path, version string, given map[string]any) {
	release, is := minorRelease(version)
	if !is {
		return
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
