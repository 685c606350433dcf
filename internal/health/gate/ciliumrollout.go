package gate

import (
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// Without this check the gate could open on the pods of the old template, right after the chart's values changed.
var ciliumRollout = check{
	Name:   "Cilium's newest version is rolled out",
	Looks:  "DaemonSets and Deployment have as many pods of their newest spec as wanted; in mode helm they belong to a release",
	ByHand: "kubectl -n NAMESPACE rollout status daemonset/cilium; kubectl -n NAMESPACE rollout status deployment/cilium-operator",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		results := append(rollout("agent DaemonSet", spec, seen, cluster.CiliumAgentSelector, seen.AgentSets, seen.Agents.Items),
			rollout("operator Deployment", spec, seen, OperatorSelector, seen.Operator, nil)...)
		if seen.hasEnvoy() {
			results = append(results, rollout("Envoy DaemonSet", spec, seen, EnvoySelector, seen.EnvoySets, seen.Envoys.Items)...)
		}
		return results
	}),
}

func rollout(
	subject string, spec *Spec, seen *Cluster, selector string, workloads health.Seen[kube.Workload], pods []kube.Pod,
) []health.Result {
	if results := unread(seen, subject, "it", workloads); results != nil {
		return results
	}
	if len(workloads.Items) == 0 {
		result := health.Fail(subject, "none with labels "+selector+" exists")
		switch spec.Cilium.Mode {
		case cluster.CiliumHelm:
			result.Command = "helm -n NAMESPACE list -a"
		case cluster.CiliumInline:
			result.Command = "talosctl -n " + spec.controlPlanes()[0].Address.String() + " get manifests"
		}
		return []health.Result{result}
	}
	var results []health.Result
	for _, w := range workloads.Items {
		w, pods := w.Without(seen.leftOut(spec), pods)
		kind, result := strings.ToLower(w.Kind), health.Pass(subject)
		switch behind := w.Behind(); {
		// Inline manifests have Helm's annotation, too, so that a release can take the objects over. In that mode it means nothing.
		case spec.Cilium.Mode == cluster.CiliumHelm && w.Release == "":
			result = health.Fail(subject, w.Name+" belongs to no Helm release; it was made by an inline manifest or by hand").
				ForGood().WithCommand(fmt.Sprintf("kubectl -n %s get %s %s -o yaml", w.Namespace, kind, w.Name))
		case behind != "":
			result = health.Fail(subject, behind).WithEvidence(w.Former(pods)...).Asks(w.Events()).
				WithCommand(fmt.Sprintf("kubectl -n %s rollout status %s/%s", w.Namespace, kind, w.Name))
		}
		results = append(results, result)
	}
	return results
}
