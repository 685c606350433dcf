package handover

import "github.com/slipway-platform/slipway/internal/health"

var instanceReady = check{
	Name:   "the FluxInstance is Ready",
	Looks:  "its Ready condition, about its newest spec",
	ByHand: "kubectl -n flux-system describe fluxinstance flux",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return judgeOne(seen.Instances, "FluxInstance", spec.Namespace, spec.Instance, objectReady)
	},
}
