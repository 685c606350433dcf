package gate

import (
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// A worker gets its taints when it registers. Nothing changes them afterwards: NodeRestriction refuses changes by its kubelet and by Talos.
// On a control plane, Talos is an administrator and applies every change. A taint that is not declared is a remark: operators set some, and
// nothing tells which taint was declared once.
var nodeTaints = check{
	Name: "every node has its declared taints",
	Looks: "the taints of the Node object; others are listed, unless Kubernetes or Cilium sets them while a node is not ready, and the gate " +
		"opens all the same",
	ByHand: "kubectl get node NODE -o jsonpath='{.spec.taints}'",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			if want.Taints == nil {
				return health.Pass(want.Name)
			}
			var lacks []string
			for _, key := range slices.Sorted(maps.Keys(want.Taints)) {
				if taint := taintText(key, want.Taints[key]); !slices.Contains(node.Taints, taint) {
					lacks = append(lacks, taint)
				}
			}
			if len(lacks) == 0 {
				return undeclaredTaints(want, node)
			}
			set := "kubectl taint node " + want.Name + " --overwrite " + strings.Join(lacks, " ")
			if want.Role == cluster.ControlPlane {
				return health.Fail(want.Name, "lacks the declared "+plural("taint", lacks)+"; Talos sets taints of control planes, see its log; "+
					"or set by hand: "+set).
					WithCommand("talosctl -n ADDRESS logs controller-runtime; kubectl describe node NODE")
			}
			return health.Fail(want.Name, "lacks the declared "+plural("taint", lacks)+
				"; a worker gets taints only when it registers, so set by hand: "+set).
				ForGood().WithCommand("kubectl describe node NODE")
		})
	},
}

// undeclaredTaints returns a remark if a node has taints that are not declared.
func undeclaredTaints(want Machine, node Node) health.Result {
	var more, remove []string
	for _, taint := range node.Taints {
		key := taint[:strings.IndexAny(taint+":", "=:")]
		if _, declared := want.Taints[key]; !declared && !temporaryTaint(key) {
			more, remove = append(more, taint), append(remove, taint+"-")
		}
	}
	if len(more) == 0 {
		return health.Pass(want.Name)
	}
	return health.Skip(want.Name, "has the "+plural("taint", more)+", not declared; declare it, or remove it: kubectl taint node "+
		want.Name+" "+strings.Join(remove, " ")).WithCommand("kubectl describe node NODE")
}

// temporaryTaint reports whether Kubernetes, a cloud provider or Cilium sets and removes a taint by itself.
func temporaryTaint(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"node.kubernetes.io", "node.cloudprovider.kubernetes.io", "node.cilium.io"}, prefix)
}

// taintText returns a taint as kubectl writes it: KEY=VALUE:EFFECT, or KEY:EFFECT without a value.
func taintText(key, declared string) string {
	value, effect, found := strings.Cut(declared, ":")
	switch {
	case !found:
		return key + ":" + declared
	case value == "":
		return key + ":" + effect
	}
	return key + "=" + value + ":" + effect
}
