package gate

import (
	"github.com/slipway-platform/slipway/internal/health"
)

// EnvoySelector are the labels that Cilium's chart gives the DaemonSet of Envoy and its pods.
const EnvoySelector = "k8s-app=cilium-envoy"

// The agents are Ready without Envoy, and report no failure. But the traffic of gateways, and of pods with policies for HTTP, passes
// through it.
var ciliumEnvoy = check{
	Name: "Envoy is Ready on every node",
	Looks: "pods with the labels `" + EnvoySelector + "`, on the nodes that their DaemonSet selects; with `l7Proxy: false` in the chart's " +
		"values there are none",
	ByHand: "kubectl -n NAMESPACE get pods -o wide -l " + EnvoySelector + "; kubectl -n NAMESPACE describe daemonset cilium-envoy",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := unread(seen, "", "cilium-config", seen.Config); results != nil {
			return results
		}
		switch {
		case len(seen.Config.Items) == 0:
			return []health.Result{health.Block("", "Cilium is not installed")}
		case !seen.hasEnvoy():
			return []health.Result{health.Skip("", "the agents are configured without a DaemonSet of Envoy")}
		}
		if results := unread(seen, "", "Envoy's pods", seen.Envoys); results != nil {
			return results
		}
		if results := unread(seen, "", "Envoy's DaemonSet", seen.EnvoySets); results != nil {
			return results
		}
		if len(seen.EnvoySets.Items) == 0 {
			return []health.Result{health.Block("", "Envoy's DaemonSet does not exist")}
		}
		var results []health.Result
		for _, want := range spec.Nodes {
			results = append(results, envoyOn(want, spec, seen))
		}
		return results
	}),
}

// hasEnvoy reports whether the agents use the Envoy of a DaemonSet. The declared values do not tell: an engine may own Cilium's.
func (seen *Cluster) hasEnvoy() bool {
	return len(seen.Config.Items) > 0 && seen.Config.Items[0]["external-envoy-proxy"] == "true"
}

func envoyOn(want Machine, spec *Spec, seen *Cluster) health.Result {
	pod, placed := podOn(want.Name, seen.Envoys.Items)
	down := seen.nodeDown(want)
	switch {
	case down != "" && (!placed || !pod.Ready):
		return health.Block(want.Name, down)
	case placed:
		return pod.ReadyResult(want.Name)
	case seen.envoyIsComplete(spec):
		return health.Skip(want.Name, "is not selected by Envoy's DaemonSet")
	}
	if _, runs := seen.agentOn(want.Name); !runs { // Envoy's pods are placed beside those of the agents only
		return health.Block(want.Name, "no agent pod is on "+want.Name)
	}
	node, _ := seen.node(want.Name)
	result := health.Fail(want.Name, "no pod of Envoy is on this node").WithEvidence(node.taints()...).
		WithCommand("kubectl -n NAMESPACE describe daemonset -l " + EnvoySelector)
	for _, set := range seen.EnvoySets.Items {
		result = result.Asks(set.Events())
	}
	for _, pod := range seen.Envoys.Items {
		if pod.Node == "" {
			result = result.WithEvidence(pod.ReadyResult("").Reason)
		}
	}
	return result
}

// envoyIsComplete reports whether Envoy's pods are on as many nodes as its DaemonSet wants: the chart's values may select some nodes only.
func (seen *Cluster) envoyIsComplete(spec *Spec) bool {
	leftOut, on := seen.leftOut(spec), map[string]bool{}
	for _, pod := range seen.Envoys.Items {
		if pod.Node != "" && !leftOut(pod.Node) {
			on[pod.Node] = true
		}
	}
	set, _ := seen.EnvoySets.Items[0].Without(leftOut, seen.Envoys.Items)
	return set.Observed && len(on) >= set.Desired
}
