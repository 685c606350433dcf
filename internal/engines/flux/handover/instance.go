package handover

import "github.com/slipway-platform/slipway/internal/health"

var instanceReady = check{
	Name:   "the FluxInstance is Ready",
	Looks:  "its Ready condition, about its newest spec",
	ByHand: "kubectl -n flux-system describe fluxinstance flux",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return judgeOne(seen.Instances, fluxInstance, spec.Namespace, spec.Instance, func(instance Object) health.Result {
			done := instance
			done.Suspended = false
			if result := objectReady(done); result.Verdict == health.Passed || !instance.Suspended {
				return result
			}
			return instance.failSuspended()
		})
	},
}
