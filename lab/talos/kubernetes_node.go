package talos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// nodeMetadata returns the labels, annotations and taints that Talos sets on its Node.
func nodeMetadata(cfg config.Provider, extensions []string, schematic string) (labels, annotations map[string]string, taints []Taint) {
	labels, annotations = map[string]string{}, map[string]string{}
	maps.Copy(labels, cfg.Machine().NodeLabels())
	maps.Copy(annotations, cfg.Machine().NodeAnnotations())
	for _, e := range extensions {
		labels["extensions.talos.dev/"+strings.TrimPrefix(e, "siderolabs/")] = ""
	}
	if schematic != "" {
		annotations["extensions.talos.dev/schematic"] = schematic // too long for a label
	}
	nodeTaints := cfg.Machine().NodeTaints()
	for _, key := range slices.Sorted(maps.Keys(nodeTaints)) {
		value, effect, found := strings.Cut(nodeTaints[key], ":")
		if !found {
			value, effect = "", value
		}
		taints = append(taints, Taint{Key: key, Value: value, Effect: effect})
	}
	if cfg.Machine().Type().IsControlPlane() {
		labels[constants.LabelNodeRoleControlPlane] = ""
		if !cfg.Cluster().ScheduleOnControlPlanes() {
			taints = append(taints, Taint{Key: constants.LabelNodeRoleControlPlane, Effect: "NoSchedule"})
		}
	}
	return labels, annotations, taints
}

// registerTaints are the taints that the kubelet registers with: machine.kubelet.extraConfig.registerWithTaints, and on a control plane
// without workloads the control plane's taint, unless it is among them or a flag names others.
func registerTaints(cfg config.Provider) []Taint {
	var taints []Taint
	text := func(value any) string {
		if value == nil {
			return ""
		}
		return fmt.Sprint(value)
	}
	listed, _ := cfg.Machine().Kubelet().ExtraConfig()["registerWithTaints"].([]any)
	for _, item := range listed {
		if taint, ok := item.(map[string]any); ok {
			taints = append(taints, Taint{Key: text(taint["key"]), Value: text(taint["value"]), Effect: text(taint["effect"])})
		}
	}
	known := slices.ContainsFunc(taints, func(t Taint) bool { return t.Key == constants.LabelNodeRoleControlPlane })
	if cfg.Machine().Type().IsControlPlane() && !cfg.Cluster().ScheduleOnControlPlanes() && !known && kubeletArgs(cfg)["register-with-taints"] == "" {
		taints = append(taints, Taint{Key: constants.LabelNodeRoleControlPlane, Effect: "NoSchedule"})
	}
	return taints
}

// kubeletArgs are machine.kubelet.extraArgs.
func kubeletArgs(cfg config.Provider) map[string]string {
	out := map[string]string{}
	for name, value := range cfg.Machine().Kubelet().ExtraArgs() {
		out[name] = strings.Join(value, ",")
	}
	return out
}

// maxPods is machine.kubelet.extraConfig.maxPods, 0 if it is not set.
func maxPods(cfg config.Provider) int {
	switch n := cfg.Machine().Kubelet().ExtraConfig()["maxPods"].(type) {
	case int:
		return n
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}
