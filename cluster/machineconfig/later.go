package machineconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// ParsedLater are the documents of Talos, by kind, and their keys, that this program parses and the Talos plugin does not: the plugin has
// the machinery of Talos 1.12. A kind without keys is wholly unknown to the plugin. The kind of Talos's first document is "".
//
// The plugin parses each configuration that it applies, and would refuse such a patch in the middle of a run. The lab's tests
// compare the list with the schemas of both.
var ParsedLater = map[string][]string{
	"BlackholeRouteConfig": nil,
	"EnvironmentConfig":    nil,
	"ExternalVolumeConfig": nil,
	"KubeSpanConfig":       nil,
	"RoutingRuleConfig":    nil,
	"TCPProbeConfig":       nil,
	"VRFConfig":            nil,
	"ExistingVolumeConfig": {"mount.disableAccessTime", "mount.secure"},
	"OOMConfig":            {"strictCgroupClassOrdering"},
	"UserVolumeConfig":     {"mount", "mount.disableAccessTime", "mount.secure"},
	"VolumeConfig":         {"mount", "mount.secure"},
	"":                     {"cluster.network.cni.flannel.kubeNetworkPoliciesEnabled"},
}

// flagsOf are the keys whose flags may have lists as values since Talos 1.13.
var flagsOf = []string{
	"cluster.apiServer.extraArgs", "cluster.controllerManager.extraArgs", "cluster.etcd.extraArgs", "cluster.proxy.extraArgs",
	"cluster.scheduler.extraArgs", "machine.kubelet.extraArgs",
}

const laterRemedy = "remove it: Slipway's Talos plugin has the machinery of Talos 1.12"

// parsedLater returns a refusal if a document of a patch has what the Talos plugin does not parse.
func parsedLater(document map[string]any) error {
	kind, _ := document["kind"].(string)
	keys, later := ParsedLater[kind]
	if later && keys == nil {
		return &refusal{"has the document " + kind + ", which the Talos plugin does not know", laterRemedy}
	}
	for _, key := range keys {
		if has(document, key) {
			return &refusal{"sets " + strings.TrimPrefix(kind+": ", ": ") + key + ", which the Talos plugin does not know", laterRemedy}
		}
	}
	for _, key := range flagsOf {
		flags, _ := cluster.ValueAt(document, key).(map[string]any)
		for _, flag := range slices.Sorted(maps.Keys(flags)) {
			if _, isList := flags[flag].([]any); isList {
				return &refusal{"gives " + key + "." + flag + " a list, which the Talos plugin does not know", laterRemedy}
			}
		}
	}
	return nil
}

// has reports whether a tree has a dotted path, also without a value.
func has(tree map[string]any, path string) bool {
	key := path
	if last := strings.LastIndex(path, "."); last >= 0 {
		key = path[last+1:]
		tree, _ = cluster.ValueAt(tree, path[:last]).(map[string]any)
	}
	_, given := tree[key]
	return given
}
