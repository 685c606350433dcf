// Package kubernetes reads what a machine configuration says of Kubernetes: the node, the components of the control plane, the bootstrap
// manifests, and who administrates it.
package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
)

// NodeMetadata returns the labels, annotations and taints that Talos sets on its Node.
func NodeMetadata(
	cfg config.Provider, extensions []string, schematic string,
) (labels, annotations map[string]string, taints []corev1.Taint) {
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
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	if cfg.Machine().Type().IsControlPlane() {
		labels[constants.LabelNodeRoleControlPlane] = ""
		if !cfg.Cluster().ScheduleOnControlPlanes() {
			taints = append(taints, corev1.Taint{Key: constants.LabelNodeRoleControlPlane, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	return labels, annotations, taints
}

// RegisterTaints are the taints that the kubelet registers with: machine.kubelet.extraConfig.registerWithTaints, and on a control plane
// without workloads the control plane's taint, unless it is among them or a flag names others.
func RegisterTaints(cfg config.Provider) []corev1.Taint {
	var taints []corev1.Taint
	text := func(value any) string {
		if value == nil {
			return ""
		}
		return fmt.Sprint(value)
	}
	listed, _ := cfg.Machine().Kubelet().ExtraConfig()["registerWithTaints"].([]any)
	for _, item := range listed {
		if taint, ok := item.(map[string]any); ok {
			taints = append(taints, corev1.Taint{
				Key: text(taint["key"]), Value: text(taint["value"]), Effect: corev1.TaintEffect(text(taint["effect"])),
			})
		}
	}
	known := slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == constants.LabelNodeRoleControlPlane })
	tainted := cfg.Machine().Type().IsControlPlane() && !cfg.Cluster().ScheduleOnControlPlanes()
	if tainted && !known && KubeletArgs(cfg)["register-with-taints"] == "" {
		taints = append(taints, corev1.Taint{Key: constants.LabelNodeRoleControlPlane, Effect: corev1.TaintEffectNoSchedule})
	}
	return taints
}

// KubeletArgs are machine.kubelet.extraArgs.
func KubeletArgs(cfg config.Provider) map[string]string {
	out := map[string]string{}
	for name, value := range cfg.Machine().Kubelet().ExtraArgs() {
		out[name] = strings.Join(value, ",")
	}
	return out
}

// MaxPods is machine.kubelet.extraConfig.maxPods, 0 if it is not set.
func MaxPods(cfg config.Provider) int {
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
